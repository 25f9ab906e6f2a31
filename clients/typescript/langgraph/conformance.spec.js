// What LangGraph's validation package asks of a checkpointer; test/conformance.test.js runs it.
import { deltaChannelHistoryTests, specTest } from '@langchain/langgraph-checkpoint-validation'
import { Varve } from '@varve/client'
import { VarveSaver } from './dist/index.js'

let made = 0
const checkpointer = {
  checkpointerName: '@varve/langgraph',
  createCheckpointer: () => new VarveSaver(new Varve(), { prefix: `validated-${process.pid}-${made++}` }), // which no other one sees
}

specTest(checkpointer)
deltaChannelHistoryTests(checkpointer)
