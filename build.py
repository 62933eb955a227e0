"""Build, test and pack Engram: `python3 build.py [COMMAND]`; `python3 build.py help` lists the commands.

Runs on any Python 3.11 or newer without anything installed: shiv, pytest and ruff come into an
environment of their own under .build/, fetched once. It is also the project's PEP 517 backend, and
there it needs nothing but itself. Must not know what the package does: it packs what lies in engram/.

The single file: shiv packs it, then it is finished here. Its start imports straight from the archive,
bytecode for each supported Python lies inside, nothing is written to the home folder, and the same
source gives the same bytes wherever all of these Pythons are.
"""
import sys

if sys.version_info < (3, 11):
    sys.exit("build.py needs Python 3.11 or newer; this is %s, %s" % (sys.version.split()[0], sys.executable))

import base64
import contextlib
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = os.path.dirname(os.path.abspath(__file__))
DIST = os.path.join(ROOT, "dist")
WORK = os.path.join(ROOT, ".build")
VERSIONS = ("3.11", "3.12", "3.13")
EPOCH = 315532800  # 1980-01-01, the first moment that a zip can name
NPM_NAME = "@the-long-ride/engram"

HEADER = '/bin/sh\nexec python3 -I -S "$0" "$@"'
# The archive's first code. Modules come from the bundle of the running Python: one entry that holds the bytecode of every
# module. Against an entry each it saves a quarter of a start: the zip's directory stays short (zipimport reads it in Python),
# no path is searched, and what is below is not compiled anew. Without a fitting bundle the sources are used.
MAIN = """import sys
if sys.version_info < (3, 11):
    sys.exit("engram needs Python 3.11 or newer; this is %s, %s" % (sys.version.split()[0], sys.executable))
archive, place = __loader__.archive, BUNDLES.get(sys.implementation.cache_tag)
sys.path[0] = archive + "/site-packages"
if place:
    import marshal
    with open(archive, "rb") as file:
        file.seek(place[0])
        exec(marshal.loads(file.read(place[1])))
from engram.__main__ import start
start()
"""
# The first part of each bundle: how the rest is imported. An index of `name offset size package?` lines follows it. The
# descriptor stays open, so a process goes on importing from the file that it was started from.
BUNDLE = """import os


class Bundle:
    def __init__(self, start, size):
        self.archive, self.start = archive, start
        self.file = os.open(archive, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self.index = self.read(0, size)

    def read(self, at, size):
        if hasattr(os, "pread"):
            return os.pread(self.file, size, self.start + at)
        os.lseek(self.file, self.start + at, os.SEEK_SET)
        return os.read(self.file, size)

    def row(self, name):
        at = self.index.find(b"\\n" + name.encode() + b" ")
        if at < 0:
            return None
        offset, size, package = self.index[at:self.index.index(b"\\n", at + 1)].split()[1:]
        return int(offset), int(size), package == b"1"

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("engram"):
            return None
        row = self.row(name)
        if row is None:
            return None
        file = "/".join([archive, sys.implementation.cache_tag, *name.split(".")])
        spec = type(__spec__)(name, self, origin=file + ("/__init__.pyc" if row[2] else ".pyc"), is_package=row[2])
        spec.has_location = True
        if row[2]:
            spec.submodule_search_locations = [file]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        at, size, _ = self.row(module.__name__)
        exec(marshal.loads(self.read(at, size)), module.__dict__)


sys.meta_path.insert(0, Bundle(place[0] + place[1], place[2]))
"""
# Runs in each interpreter. A hash that is never checked: a time would be compared with the zip's local one.
COMPILE = """import os, py_compile, sys
folder, out = sys.argv[1:]
for line in sys.stdin.read().split("\\n"):
    target = os.path.join(out, line + "c")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    py_compile.compile(os.path.join(folder, line), target, line, True, 2,  # docstrings are for readers of the source
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""
# On Windows npm's wrappers cannot run a file that starts with /bin/sh; this finds a Python for it.
NPM_SHIM = """#!/usr/bin/env node
"use strict";
const { spawn, spawnSync } = require("child_process");
const path = require("path");
const tries = process.platform === "win32" ? [["py", "-3"], ["python"]] : [["python3"], ["python"]];
const test = ["-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"];
const found = tries.find(([cmd, ...args]) => spawnSync(cmd, [...args, ...test], { stdio: "ignore" }).status === 0);
if (!found) {
  console.error("engram needs Python 3.11 or newer on PATH.");
  process.exit(1);
}
const [cmd, ...args] = found;
const child = spawn(cmd, [...args, "-I", "-S", path.join(__dirname, "engram"), ...process.argv.slice(2)], { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
const pass = (signal) => child.kill(signal);
signals.forEach((signal) => process.on(signal, pass));
child.on("error", (error) => { console.error(`engram: ${error.message}`); process.exit(1); });
child.on("exit", (code, signal) => {
  signals.forEach((name) => process.removeListener(name, pass));
  if (signal) process.kill(process.pid, signal);
  else process.exit(code);
});
"""


# What goes in

def version():
    with open(os.path.join(ROOT, "engram", "__init__.py"), encoding="utf-8") as file:
        return re.search(r'^__version__ = "([^"]+)"$', file.read(), re.M).group(1)


def project():
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)


def sources():
    """Return the package's files, code and data, as sorted (name, bytes); names start with `engram/`."""
    found = []
    for folder, folders, names in os.walk(os.path.join(ROOT, "engram")):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.endswith((".pyc", ".tmp", "~")):
                path = os.path.join(folder, name)
                found.append((os.path.relpath(path, ROOT).replace(os.sep, "/"), read(path)))
    return sorted(found)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data, mode=0o644):
    """Put a file in place whole: somebody may be running the old one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.chmod(temporary, mode)
    os.replace(temporary, path)


# Tools and interpreters

def pythons():
    """Return {"3.11": path, …} for the supported interpreters on this machine, shims of version managers aside."""
    managers = [os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv"), os.path.dirname(os.path.dirname(sys.base_prefix))]
    found = {}
    for wanted in VERSIONS:
        tries = [os.path.join(sys.base_prefix, "bin", f"python{wanted}"), sys.executable]
        for root in filter(None, managers):
            tries += sorted(glob.glob(os.path.join(glob.escape(root), "versions", f"{wanted}.*", "bin", f"python{wanted}")))
        tries += sorted(glob.glob(os.path.expanduser(f"~/.local/share/uv/python/cpython-{wanted}.*/bin/python{wanted}")))
        tries += [os.path.join(folder, f"python{wanted}") for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
        for path in tries:
            if os.path.isfile(path) and os.sep + "shims" + os.sep not in path and speaks(path, wanted):
                found[wanted] = path
                break
    return found


def speaks(path, wanted):
    ask = "import sys; sys.stdout.write(sys.implementation.name + '%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([path, "-I", "-S", "-c", ask], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout == "cpython" + wanted


def environment(group, pins=None, makers=None):
    """Return the Python of the environment for a dependency group, made and filled when it is not there yet.

    `pins`: what to install in its stead; `makers`: paths of the Pythons that may make it.
    """
    home = os.path.join(WORK, group)
    python = os.path.join(home, "Scripts" if os.name == "nt" else "bin", "python")
    pins = pins or project()["dependency-groups"][group]
    stamp = os.path.join(home, "installed")
    wanted = "\n".join(pins)
    with one_at_a_time():
        if not (os.path.exists(stamp) and read(stamp).decode() == wanted):
            say(f"preparing .build/{group}: {', '.join(pins)}")
            shutil.rmtree(home, ignore_errors=True)
            install = make_venv(home, python, makers)
            if subprocess.run([*install, "install", "--quiet", "--disable-pip-version-check", *pins]).returncode:
                raise SystemExit(f"build.py: could not install {', '.join(pins)}; see above. A network is needed once.")
            write(stamp, wanted.encode())
    return python


def make_venv(home, python, makers=None):
    """Make a virtual environment and return the command that runs pip for it. Debian ships venv without ensurepip."""
    makers = makers or dict.fromkeys([sys.executable, *pythons().values()])
    for maker in makers:
        if subprocess.run([maker, "-m", "venv", home], capture_output=True).returncode == 0:
            return [python, "-m", "pip"]
        shutil.rmtree(home, ignore_errors=True)
    for maker in makers:
        if (subprocess.run([maker, "-m", "pip", "--version"], capture_output=True).returncode == 0
                and subprocess.run([maker, "-m", "venv", "--without-pip", home], capture_output=True).returncode == 0):
            return [maker, "-m", "pip", "--python", python]
    raise SystemExit("build.py: this Python can make no virtual environment with pip. On Debian or Ubuntu: "
                     "apt install python3-venv")


@contextlib.contextmanager
def one_at_a_time():
    os.makedirs(WORK, exist_ok=True)
    with open(os.path.join(WORK, "lock"), "w") as file:
        if os.name != "nt":
            import fcntl  # not on Windows
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text):
    print(text, file=sys.stderr, flush=True)


# The single file

def build(out=None, *, interpreters=None):
    """Build the single file and return its path; `dist/engram-mcp` beside it is the same file under its other name."""
    out = out or os.path.join(DIST, "engram")
    interpreters = pythons() if interpreters is None else interpreters
    files = [*sources(), ("LICENSE", read(os.path.join(ROOT, "LICENSE")))]
    with tempfile.TemporaryDirectory() as folder:
        stage = os.path.join(folder, "site-packages")
        for name, data in files:
            write(os.path.join(stage, *name.split("/")), data)
        packed = pack(environment("dev"), stage, os.path.join(folder, "packed"))
        bundles = {}
        for wanted in VERSIONS:
            tag = "cpython-" + wanted.replace(".", "")
            if wanted in interpreters:
                packed[f"{tag}.bundle"], *bundles[tag] = bundle(bytecode(interpreters[wanted], tag, stage, folder, files))
            else:
                say(f"no Python {wanted} here: the file runs on it all the same, but starts slower, and its hash differs")
    data = finished(packed, bundles)
    write(out, data, 0o755)
    alias(out)
    say(f"{os.path.relpath(out)}  {len(data):,} bytes  sha256 {hashlib.sha256(data).hexdigest()}")
    return out


def pack(python, stage, out):
    """Let shiv pack the stage; return its archive's files as {name: bytes}."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SHIV"))}
    subprocess.run([python, "-m", "shiv", "--site-packages", stage, "--python", HEADER, "--reproducible", "--uncompressed",
                    "--entry-point", "engram.__main__:main", "-o", out],
                   check=True, env=clean | {"SOURCE_DATE_EPOCH": str(EPOCH)}, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(out) as packed:
        return {name: packed.read(name) for name in packed.namelist() if not name.endswith("/")}


def bytecode(python, tag, stage, folder, files):
    """Return {path of a source: its code, marshalled} as one interpreter compiles it, BUNDLE's under its own name."""
    out = os.path.join(folder, tag)
    write(os.path.join(stage, "BUNDLE.py"), BUNDLE.encode())
    names = ["BUNDLE.py", *(name for name, _ in files if name.endswith(".py"))]
    subprocess.run([python, "-I", "-S", "-c", COMPILE, stage, out], input="\n".join(names), text=True, check=True)
    return {name: read(os.path.join(out, *name.split("/")) + "c")[16:] for name in names}


def bundle(codes):
    """Return (bytes of a bundle, length of BUNDLE's code in it, length of the index behind that)."""
    first, rows = codes.pop("BUNDLE.py"), []
    for name, code in sorted(codes.items()):
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        rows.append((module, code, int(name.endswith("/__init__.py"))))
    size = 0  # offsets count from the index on, which holds them: lengthened until it fits
    while True:
        at, index = size, b"\n"
        for module, code, package in rows:
            index += f"{module} {at} {len(code)} {package}\n".encode()
            at += len(code)
        if len(index) == size:
            return first + index + b"".join(code for _, code, _ in rows), len(first), size
        size = len(index)


def finished(packed, bundles):
    """Return the whole file: the header line and the archive, whose first code knows where the bundles lie.

    `bundles` maps a cache tag to (length of BUNDLE's code, length of the index).
    """
    header, starts = b"#!" + HEADER.encode() + b"\n", dict.fromkeys(bundles, 0)
    for _ in range(2):  # numbers of one width: the second archive has everything where the first had it
        rows = ", ".join(f'"{tag}": (0x{start:08x}, 0x{bundles[tag][0]:08x}, 0x{bundles[tag][1]:08x})' for tag, start in starts.items())
        packed["__main__.py"] = MAIN.replace("BUNDLES", "{" + rows + "}").encode()
        data = header + archive(packed)
        with zipfile.ZipFile(io.BytesIO(data)) as made:
            for tag in starts:  # before an entry's data stand a header of 30 bytes and its name
                starts[tag] = made.getinfo(f"{tag}.bundle").header_offset + 30 + len(f"{tag}.bundle")
    return data


def archive(files):
    """Return a zip of {name: bytes} that depends on nothing else: sorted, stored, one time, one mode."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as packed:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            packed.writestr(entry, files[name])
    return out.getvalue()


def alias(out):
    """Give the file its second name: a relative link, or a copy where links need rights."""
    other = os.path.join(os.path.dirname(out), "engram-mcp")
    if os.path.basename(out) != "engram":
        return
    temporary = f"{other}.{os.getpid()}.tmp"
    try:
        os.symlink("engram", temporary)
        os.replace(temporary, other)
    except OSError:
        write(other, read(out), 0o755)


# Packages: wheel, source archive, npm

def metadata():
    meta = project()["project"]
    lines = ["Metadata-Version: 2.4", f"Name: {meta['name']}", f"Version: {version()}", f"Summary: {meta['description']}",
             f"License-Expression: {meta['license']}", "License-File: LICENSE", f"Requires-Python: {meta['requires-python']}",
             *(f"Classifier: {row}" for row in meta["classifiers"]), "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines).encode() + b"\n" + read(os.path.join(ROOT, "README.md"))


def wheel(folder, files):
    """Write a wheel of (name, bytes) rows into `folder`; return its file name."""
    info = f"engram-{version()}.dist-info"
    scripts = "".join(f"{name} = {target}\n" for name, target in sorted(project()["project"]["scripts"].items()))
    rows = [*files, (f"{info}/METADATA", metadata()), (f"{info}/entry_points.txt", b"[console_scripts]\n" + scripts.encode()),
            (f"{info}/licenses/LICENSE", read(os.path.join(ROOT, "LICENSE"))),
            (f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: engram-build\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in rows) + f"{info}/RECORD,,\n"
    name = f"engram-{version()}-py3-none-any.whl"
    write(os.path.join(folder, name), archive(dict(rows) | {f"{info}/RECORD": record.encode()}))
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return wheel(wheel_directory, sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return wheel(wheel_directory, [("engram-here.pth", ROOT.encode() + b"\n")])


def build_sdist(sdist_directory, config_settings=None):
    top = f"engram-{version()}"
    names = ["pyproject.toml", "build.py", "README.md", "CHANGELOG.md", "LICENSE"]
    rows = [("PKG-INFO", metadata()), *((name, read(os.path.join(ROOT, name))) for name in names), *sources()]
    write(os.path.join(sdist_directory, f"{top}.tar.gz"), tarball([(f"{top}/{name}", data, 0o644) for name, data in rows]))
    return f"{top}.tar.gz"


def tarball(rows):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for name, data, mode in rows:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, EPOCH
            packed.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=EPOCH)


def npm_package(folder, file):
    """Write the npm package around the single file: that is its commands itself; `engram-shim` is for Windows."""
    described = {"name": NPM_NAME, "version": version(), "description": project()["project"]["description"],
                 "license": "Apache-2.0", "bin": {"engram": "engram", "engram-mcp": "engram", "engram-shim": "shim.js"},
                 "files": ["engram", "shim.js"]}
    rows = [("package.json", json.dumps(described, indent=2).encode() + b"\n", 0o644), ("engram", read(file), 0o755),
            ("shim.js", NPM_SHIM.encode(), 0o755), ("README.md", read(os.path.join(ROOT, "README.md")), 0o644),
            ("LICENSE", read(os.path.join(ROOT, "LICENSE")), 0o644)]
    out = os.path.join(folder, f"engram-{version()}.tgz")
    write(out, tarball([("package/" + name, data, mode) for name, data, mode in rows]))
    return out


# Commands

def run_build(args):
    """build dist/engram and dist/engram-mcp"""
    build()


def run_test(args):
    """build, lint and run the tests; --peers: those that talk to other software; --full: the long trials"""
    chosen = [word for word in args if word not in ("--peers", "--full")]
    python = environment("dev")
    env = os.environ | ({"ENGRAM_TRIALS": "full"} if "--full" in args else {}) | {"PYTHONDONTWRITEBYTECODE": "1"}
    if "--peers" in args:
        env |= peers()
    else:
        build()
    lint = subprocess.run([python, "-m", "ruff", "check", "--no-cache", ROOT]).returncode
    marks = ["-m", "peers" if "--peers" in args else "not peers"]
    tested = subprocess.run([python, "-m", "pytest", *marks, *chosen], cwd=ROOT, env=env).returncode
    return tested or lint


def peers():
    """Install what can be had of the peers; name what cannot; return the variables that tell tests where they are."""
    found, missing = {}, []
    try:
        found["ENGRAM_PEERS_PYTHON"] = environment("peers")
    except SystemExit:
        missing += project()["dependency-groups"]["peers"]
    folder = os.path.join(WORK, "peers-npm")
    pins = project()["tool"]["engram"]["peers-npm"]
    if not all(npm_has(folder, pin) for pin in pins) and not npm_install(folder, pins):
        for pin in pins:  # one that can't be had must not keep out the others
            npm_has(folder, pin) or npm_install(folder, [pin])
    missing += [pin for pin in pins if not npm_has(folder, pin)]
    found["ENGRAM_PEERS_BIN"] = os.path.join(folder, "node_modules", ".bin")
    say(f"peers that could not be had: {', '.join(missing)}" if missing else "all peers are here")
    return found


def npm_has(folder, pin):
    name, _, wanted = pin.rpartition("@")
    try:
        with open(os.path.join(folder, "node_modules", *name.split("/"), "package.json"), encoding="utf-8") as file:
            return json.load(file).get("version") == wanted
    except (OSError, ValueError):
        return False


def npm_install(folder, pins):
    npm = shutil.which("npm")
    if npm is None:
        return False
    os.makedirs(folder, exist_ok=True)
    say(f"preparing {os.path.relpath(folder)}: {', '.join(pins)}")
    flags = ["--no-audit", "--no-fund", "--loglevel=error", "--legacy-peer-deps", "--prefix", folder]
    return subprocess.run([npm, "install", *flags, *pins]).returncode == 0


def run_demo(args):
    """build, then run `engram demo`"""
    return subprocess.run([sys.executable, "-I", "-S", build(), "demo", *args]).returncode


def run_bench(args):
    """build, then print the tables of speed and retrieval; --install-peers: install what they compare with"""
    return subprocess.run([environment("dev"), os.path.join(ROOT, "tests", "bench", "bench.py"), build(), *args], cwd=ROOT).returncode


def run_torture(args):
    """build, then run the robustness trials; --short (default) or --long, --seed N, names of trials"""
    return subprocess.run([environment("dev"), "-m", "tests.torture", build(), *args], cwd=ROOT).returncode


def run_npm(args):
    """build, then make the npm package in dist/"""
    say(os.path.relpath(npm_package(DIST, build())))


def run_wheel(args):
    """make a wheel in dist/"""
    say(os.path.join("dist", build_wheel(DIST)))


def run_help(args):
    """show this list"""
    print("python3 build.py [COMMAND]   (without one: build)\n")
    for name, function in COMMANDS.items():
        print(f"  {name:8} {function.__doc__}")


COMMANDS = {"build": run_build, "test": run_test, "demo": run_demo, "bench": run_bench, "torture": run_torture,
            "npm": run_npm, "wheel": run_wheel, "help": run_help}


def main(argv):
    name, args = (argv[0], argv[1:]) if argv else ("build", [])
    if name in ("-h", "--help"):
        name = "help"
    if name not in COMMANDS:
        say(f"build.py: no command {name!r}; there are {', '.join(COMMANDS)}.")
        return 2
    try:
        return COMMANDS[name](args) or 0
    except subprocess.CalledProcessError as error:
        say(f"build.py: {' '.join(map(str, error.cmd[:3]))} … failed with {error.returncode}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
