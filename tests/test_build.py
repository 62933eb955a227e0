"""The single file as people run it: what it is made of, where it starts, what it must not do."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

import pytest

import build
from tests.trials import count

ROOT = build.ROOT
NOBODY = 65534


def sha256(path):
    return hashlib.sha256(build.read(path)).hexdigest()


def start(argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", timeout=120, **more)


@pytest.fixture
def python_on_path(tmp_path):
    """Return a function that makes a PATH on which `python3` is the given interpreter."""

    def make(python):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        link = folder / "python3"
        link.unlink(missing_ok=True)
        link.symlink_to(python)
        return f"{folder}:/usr/bin:/bin"

    return make


@pytest.fixture(scope="session")
def copy(built):
    """Return a copy of the built file that another user can read, in a folder with a space in its name."""
    folder = tempfile.mkdtemp(prefix="engram build ")  # pytest's own folder is closed to others
    os.chmod(folder, 0o755)
    yield shutil.copy(built, os.path.join(folder, "engram"))
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """Return a copy of what a build needs, whose sources nobody edits meanwhile."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "build.py", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(os.path.join(ROOT, name), folder)
    shutil.copytree(os.path.join(ROOT, "engram"), folder / "engram", ignore=shutil.ignore_patterns("__pycache__"))
    os.symlink(build.WORK, folder / ".build")
    return folder


def test_two_builds_under_different_circumstances_have_the_same_bytes(tmp_path, checkout):
    hashes = set()
    for number, (umask, more) in enumerate(
        [
            (0o022, {}),
            (0o077, {"SOURCE_DATE_EPOCH": "1700000000", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LC_ALL": "C"}),
        ]
    ):
        out = tmp_path / str(number) / "engram"
        code = f"import os, build; os.umask({umask}); build.build({str(out)!r})"
        start([sys.executable, "-c", code], cwd=checkout, env=os.environ | more, check=True)
        hashes.add(sha256(out))
        assert os.stat(out).st_mode & 0o111
    assert len(hashes) == 1


def test_the_builders_own_python_makes_no_difference(tmp_path, pythons, checkout):
    hashes = set()
    for wanted, python in pythons.items():
        out = tmp_path / wanted / "engram"
        start([python, "-c", f"import build; build.build({str(out)!r})"], cwd=checkout, check=True)
        hashes.add(sha256(out))
    assert len(hashes) == 1


def test_the_file_starts_with_a_shell_line_and_is_an_archive_that_shiv_can_read(built):
    first = build.read(built).split(b"\n", 1)[0]
    assert first == b"#!/bin/sh"
    shiv_info = os.path.join(build.WORK, "dev", "bin", "shiv-info")
    told = start([shiv_info, built])
    assert told.returncode == 0 and "engram.__main__:main" in told.stdout
    with zipfile.ZipFile(built) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
    assert names == sorted(names) and not [name for name in names if name.startswith("/") or ".." in name]


def test_the_file_stays_under_eight_mebibytes(built):
    assert os.path.getsize(built) < 8 * 1024 * 1024


def test_engram_mcp_is_the_same_file_under_its_other_name(built):
    assert sha256(os.path.join(os.path.dirname(built), "engram-mcp")) == sha256(built)


@pytest.mark.parametrize("wanted", build.VERSIONS)
def test_each_python_loads_its_own_bytecode_and_passes_the_exit_code_on(
    copy, pythons, wanted, python_on_path, clean_environment
):
    if wanted not in pythons:
        pytest.skip(f"no Python {wanted} here")
    env = {"PATH": python_on_path(pythons[wanted]), "HOME": str(clean_environment)}
    said = start([copy, "--version"], env=env)
    assert (said.returncode, said.stdout.strip()) == (0, build.version())
    assert start([copy, "no-such-command"], env=env).returncode == 2
    look = (
        "import atexit, runpy, sys; sys.argv = [sys.argv[1], '--version']\n"
        "atexit.register(lambda: print(sys.modules['engram.__main__'].__file__))\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    shown = start([pythons[wanted], "-I", "-S", "-c", look, copy], env=env).stdout.split("\n")[1]
    assert shown.endswith(f"/cpython-{wanted.replace('.', '')}/engram/__main__.pyc")


@pytest.mark.case("EN-01")
@pytest.mark.parametrize("home", ["read-only", "missing", "unset", "empty"])
def test_another_user_without_a_usable_home_can_run_it(copy, home, tmp_path):
    if os.geteuid():
        pytest.skip("needs root to become somebody else")
    folder = tmp_path / "home"
    folder.mkdir()
    tmp_path.chmod(0o755)
    folder.chmod(0o555)
    place = {
        "read-only": {"HOME": str(folder)},
        "missing": {"HOME": "/nonexistent"},
        "unset": {},
        "empty": {"HOME": ""},
    }[home]
    env = {"PATH": "/usr/bin:/bin"} | place
    for words in (["--version"], ["help"], ["list"], ["load", "anything"]):
        done = start([copy, *words], env=env, cwd=tmp_path, user=NOBODY, group=NOBODY, extra_groups=[])
        assert done.returncode in (0, 2), done.stderr  # 2: there is no store here, and it says what to run
        assert "Traceback" not in done.stderr
    assert os.listdir(folder) == []


def test_nothing_in_the_environment_decides_what_runs(copy, tmp_path, clean_environment):
    (tmp_path / "json.py").write_text("raise SystemExit('foreign json')")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('foreign sitecustomize')")
    env = os.environ | {
        "PYTHONPATH": str(tmp_path),
        "SHIV_ENTRY_POINT": "platform:platform",
        "SHIV_ROOT": "/proc",
        "PYTHONSTARTUP": str(tmp_path / "json.py"),
        "PYTHONHOME": "",
        "SHIV_INTERPRETER": "1",
    }
    assert start([copy, "--version"], env=env, cwd=tmp_path).stdout.strip() == build.version()
    assert start([copy, "list", "--json"], env=env, cwd=tmp_path).returncode == 2


def test_a_start_leaves_nothing_in_the_home_folder(run, clean_environment, tmp_path):
    for words in (["--version"], ["help"], ["list"], ["search", "x"]):
        run(*words, code=None)
    assert os.listdir(clean_environment) == []


def test_a_link_and_a_copy_named_engram_mcp_are_the_server(copy, tmp_path):
    link = tmp_path / "engram-mcp"
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    for make in (os.symlink, shutil.copy):
        make(copy, link)
        done = start([link], input=ping, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, '{"jsonrpc":"2.0","id":1,"result":{}}\n')
        link.unlink()


@pytest.mark.case("EN-03")
def test_an_old_python_is_told_in_one_line_what_is_needed(copy, python_on_path):
    old = next((path for version in ("3.8", "3.9", "3.10") for path in older(version)), None)
    if not old:
        pytest.skip("no Python older than 3.11 here")
    done = start([copy, "--version"], env={"PATH": python_on_path(old)})
    assert done.returncode == 1
    assert done.stderr.startswith("engram needs Python 3.11 or newer; this is 3.") and done.stderr.count("\n") == 1


def older(version):
    import glob

    return glob.glob(os.path.expanduser(f"~root/.pyenv/versions/{version}.*/bin/python{version}"))


@pytest.mark.case("EN-02")
def test_many_first_starts_at_once_all_answer(copy, tmp_path):
    """Nothing is unpacked, so there is nothing to race for; a killed start leaves nothing behind either."""
    hello = (
        '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"t","version":"1"}}}\n'
    )
    for number in range(count(3, 10)):
        home = tmp_path / f"home{number}"
        home.mkdir()
        env = os.environ | {"HOME": str(home)}
        argv = [copy, "mcp", "--surface", "engram"]
        killed = subprocess.Popen(argv, stdin=subprocess.PIPE, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
        killed.kill()
        killed.stdin.close()
        killed.wait()
        servers = [
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=tmp_path, text=True)
            for _ in range(8)
        ]
        for server in servers:
            out, _ = server.communicate(hello, timeout=60)
            assert server.returncode == 0 and '"name":"engram"' in out.replace(": ", ":")
        assert os.listdir(home) == []


def test_package_data_is_found_in_the_checkout_and_in_the_archive(built):
    data = [name for name, _ in build.sources() if not name.endswith(".py")]
    if not data:
        pytest.skip("the package has no data files")
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from engram import files\n"
        "import hashlib; print(hashlib.sha256(files.package_data(sys.argv[2])).hexdigest())"
    )
    for name in data:
        for place in (ROOT, built + "/site-packages"):
            shown = start([sys.executable, "-I", "-S", "-c", code, place, name.removeprefix("engram/")])
            assert shown.stdout.strip() == sha256(os.path.join(ROOT, name)), (name, place, shown.stderr)


def test_the_wheel_and_the_editable_wheel_install_without_a_network(tmp_path, checkout):
    home = tmp_path / "venv"
    installer = build.make_venv(str(home), str(home / "bin" / "python"))
    for form in ([str(checkout)], ["-e", str(checkout)]):
        start([*installer, "install", "--no-index", "--quiet", "--force-reinstall", *form], cwd=tmp_path, check=True)
        for name in ("engram", "engram-mcp"):
            said = start([home / "bin" / name, "--version"], cwd=tmp_path)
            assert (said.returncode, said.stdout.strip()) == (0, build.version()), said.stderr


def test_the_npm_package_holds_the_file_itself(tmp_path, built):
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        pytest.skip("npm is not installed")
    packed = build.npm_package(str(tmp_path), built)
    again = build.read(packed)
    assert build.read(build.npm_package(str(tmp_path), built)) == again
    start(
        [npm, "install", "--offline", "--no-audit", "--no-fund", "--prefix", tmp_path, packed], cwd=tmp_path, check=True
    )
    commands = tmp_path / "node_modules" / ".bin"
    assert sha256(commands / "engram") == sha256(built)
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    for argv in ([commands / "engram-mcp"], [commands / "engram-shim", "mcp", "--surface", "engram"]):
        done = start(argv, input=ping, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, '{"jsonrpc":"2.0","id":1,"result":{}}\n'), done.stderr


def test_a_server_goes_on_when_its_file_is_replaced(copy, tmp_path):
    """Modules load from the archive: all that serving needs must be loaded before the first answer."""
    running = tmp_path / "engram-mcp"
    shutil.copy(copy, running)
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"t","version":"1"}}}\n'
    )
    server = subprocess.Popen(
        [running], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    server.stdin.write(hello)
    server.stdin.flush()
    assert '"serverInfo"' in server.stdout.readline()
    running.write_bytes(b"#!/bin/sh\nexit 1\n" + b"x" * 1000)
    calls = [
        ("engram_load", '{"query":"x"}'),
        ("engram_route", '{"query":"x"}'),
        ("engram_search", '{"query":"x"}'),
        ("engram_verify", "{}"),
        ("engram_status", "{}"),
        ("engram_save", '{"text":"TYPE: rule | TEXT: Always run the linter."}'),
        ("engram_save_session", '{"text":"TYPE: rule | TEXT: Never skip the tests."}'),
        ("engram_commit", '{"approval_token":"nonsense"}'),
        ("engram_set_role", '{"roles":["tester"]}'),
        ("engram_set_rule_variant", '{"variant":"status"}'),
        ("engram_note", '{"text":"half way"}'),
    ]
    lines = "".join(
        f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{name}","arguments":{words}}}}}\n'
        for number, (name, words) in enumerate(calls, 2)
    )
    lines += '{"jsonrpc":"2.0","id":90,"method":"resources/list"}\n'
    lines += '{"jsonrpc":"2.0","id":91,"method":"prompts/get","params":{"name":"propose"}}\n'
    out, err = server.communicate('{"jsonrpc":"2.0","method":"notifications/initialized"}\n' + lines, timeout=120)
    assert server.returncode == 0
    assert len(out.splitlines()) == len(calls) + 2
    assert "ZipImportError" not in out + err and "internal error" not in out + err and "Traceback" not in err
