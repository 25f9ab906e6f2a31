"""Makes the wheel without another package, for pip or by python3 wheel.py DIR. The same files give the same bytes."""
import base64
import hashlib
import os
import re
import sys
import time
import zipfile

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "pyproject.toml"), encoding="utf-8") as f:
    setting = dict(re.findall(r'^([a-z-]+) = "(.*)"$', f.read(), re.M))
with open(os.path.join(here, setting["readme"]), encoding="utf-8") as f:
    readme = f.read()
name = "varve-%s" % setting["version"]
files = {}
for module in sorted(os.listdir(os.path.join(here, "varve"))):
    if module.endswith((".py", ".typed")):
        with open(os.path.join(here, "varve", module), "rb") as f:
            files["varve/" + module] = f.read()
files[name + ".dist-info/METADATA"] = (
    "Metadata-Version: 2.1\nName: varve\nVersion: %(version)s\nSummary: %(description)s\nLicense: Apache-2.0\n"
    "Requires-Python: %(requires-python)s\nDescription-Content-Type: text/markdown\n\n" % setting + readme
).encode()
files[name + ".dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: varve\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
record = name + ".dist-info/RECORD"
lines = []
for path, text in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    lines.append("%s,sha256=%s,%d\n" % (path, digest, len(text)))
files[record] = ("".join(lines) + record + ",,\n").encode()
at = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")))[:6]


def build_wheel(directory, *_):
    """Writes the wheel and returns its name; pip calls this."""
    file = name + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, file), "w") as wheel:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path, at)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, text)
    return file


if __name__ == "__main__":
    build_wheel(sys.argv[1])
