// Makes src/types.ts of the API's description: the schemas that the sources name, and those that these name.
//
//     node generate.mjs http://localhost:8080/openapi.json           # writes it
//     node generate.mjs http://localhost:8080/openapi.json --check   # exits with 1 if it is not what would be written
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const folder = new URL('src/', import.meta.url)
const { openapi, info, components: { schemas } } = await (await fetch(process.argv[2])).json()

const sources = readdirSync(folder).filter(name => name !== 'types.ts').map(name => readFileSync(new URL(name, folder), 'utf8'))
const named = sources.flatMap(text => [...text.matchAll(/import type \{([^}]*)\} from '.\/types.js'/g)])
  .flatMap(([, names]) => names.split(',').map(name => name.trim().split(' as ')[0]).filter(Boolean))
const picked = {}
for (const todo = named; todo.length;) {
  const name = todo.pop()
  if (picked[name]) continue
  picked[name] = schemas[name]
  todo.push(...[...JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, other]) => other))
}

const ordered = Object.fromEntries(Object.entries(picked).sort(([a], [b]) => (a < b ? -1 : 1)))
const ast = await openapiTS({ openapi, info, paths: {}, components: { schemas: ordered } }, {
  rootTypes: true, rootTypesNoSchemaPrefix: true, defaultNonNullable: false, // a request may leave out what has a default
})
const text = '// Made by generate.mjs; do not edit.\n' + astToString(ast)
const file = new URL('types.ts', folder)
if (!process.argv.includes('--check')) {
  writeFileSync(file, text)
} else if (readFileSync(file, 'utf8') !== text) {
  console.error('src/types.ts is not what the description gives: npm run generate')
  process.exit(1)
}
