"""What the jobs work on: made once, on the local disk, from the seed; it is the same for each place."""

import io, shutil, tarfile
from pathlib import Path

from .place import run

LENGTHS = [0, 1, 10, 300, 300, 3_000, 3_000, 3_000, 16_384, 16_385, 20_000]
MODES = [0o644, 0o644, 0o600, 0o755, 0o640, 0o400]
PER_FOLDER = 100
# In 2025: times in the future make programs complain.
NEWEST = 1_750_000_000
MODULES = 60


def make(options, chance, folder, names):
    """What the jobs of these names need."""
    folder.mkdir()
    makers = {"git": repository, "trees": files, "make": program, "cargo": source, "npm": packages, "sqlite": ledger, "pip": small, "go": module}
    for name in names:
        makers[name](options, chance, folder)
    run("chmod", "-R", "a+rX", folder)


def repository(options, chance, folder):
    git = ["git", "-c", "safe.directory=*", "-C", options.repository]
    run(*git, "bundle", "create", "-q", folder / "repository.bundle", "HEAD")
    commits = run(*git, "rev-list", "HEAD").split()
    older = sorted(chance.sample(range(len(commits)), min(options.commits, len(commits))), reverse=True)
    # The newest twice: a tree that was another one in between.
    (folder / "commits").write_text("\n".join([commits[0], *(commits[n] for n in older), commits[0]]))


def files(options, chance, folder):
    with tarfile.open(folder / "files.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        added(archive, "files", kind=tarfile.DIRTYPE, mode=0o755, time=10**9)
        for number in range(options.files):
            if number % PER_FOLDER == 0:
                top = f"files/d{number // PER_FOLDER // 10}"
                if number // PER_FOLDER % 10 == 0:
                    added(archive, top, kind=tarfile.DIRTYPE, mode=chance.choice([0o755, 0o700]), time=chance.randrange(10**9))
                path = f"{top}/e{number // PER_FOLDER}"
                added(archive, path, kind=tarfile.DIRTYPE, mode=chance.choice([0o755, 0o750]), time=chance.randrange(10**9))
            one(archive, chance, path, number)
        # Hard links are within one directory, and stay there.
        added(archive, "files/links", kind=tarfile.DIRTYPE, mode=0o755, time=1)
        for number in range(options.files // 100):
            one(archive, chance, "files/links", number)
            for other in range(number % 3):
                added(archive, f"files/links/other{other}-{number}", kind=tarfile.LNKTYPE, to=f"files/links/f{number}")


def one(archive, chance, path, number):
    """A file, and beside it now and then a symbolic link."""
    data = chance.randbytes(200_000 if chance.random() < 0.005 else chance.choice(LENGTHS))
    # What the scripts change is writable.
    mode = chance.choice(MODES) if number % 10 in (0, 2, 4, 6, 8) else 0o644
    added(archive, f"{path}/f{number}", data, mode=mode, time=chance.randrange(10**9, NEWEST))
    if chance.random() < 0.03:
        added(archive, f"{path}/s{number}l", kind=tarfile.SYMTYPE, to=chance.choice([f"f{number}", "nowhere"]), time=chance.randrange(10**9))


def added(archive, name, data=b"", kind=tarfile.REGTYPE, mode=0o644, time=10**9, to=""):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime, entry.linkname, entry.size = kind, mode, time, to, len(data)
    archive.addfile(entry, io.BytesIO(data))


def program(_options, chance, folder):
    """A program of many modules, each of which needs the headers of some others."""
    with tarfile.open(folder / "program.tar", "w") as archive:
        for number in range(MODULES):
            needed = sorted(chance.sample(range(MODULES), 4))
            headers = "".join(f'#include "m{n}.h"\n' for n in [number, *needed])
            calls = " + ".join(f"f{n}(depth - 1)" for n in needed)
            body = f"int f{number}(int depth) {{ return depth > 0 ? ({calls}) % 10007 : {chance.randrange(1000)}; }}\n"
            added(archive, f"program/m{number}.h", f"#pragma once\nint f{number}(int depth);\n".encode())
            added(archive, f"program/m{number}.c", (headers + body).encode())
        main = '#include <stdio.h>\n#include "m0.h"\nint main(void) { printf("%d\\n", f0(6)); }\n'
        added(archive, "program/main.c", main.encode())
        rules = ("objects = $(patsubst %.c,%.o,$(wildcard *.c))\nprogram: $(objects)\n\t$(CC) -o $@ $(sort $(objects))\n"
                 "%.o: %.c\n\t$(CC) -O1 -MMD -c -o $@ $<\n-include $(wildcard *.d)\n")
        added(archive, "program/Makefile", rules.encode())


def source(options, _chance, folder):
    """The project's own source, as it was committed last."""
    git = ["git", "-c", "safe.directory=*", "-C", Path(__file__).parents[2]]
    run(*git, "archive", "--format=tar", f"--output={folder / 'source.tar'}", "HEAD")


def packages(_options, chance, folder):
    (folder / "packages").mkdir()
    for number in range(20):
        with tarfile.open(folder / f"packages/package{number}-1.0.{number}.tgz", "w:gz") as archive:
            manifest = f'{{"name":"package{number}","version":"1.0.{number}","main":"index.js"}}'
            added(archive, "package/package.json", manifest.encode())
            parts = range(chance.randrange(20, 60))
            sums = " + ".join(f'require("./lib/part{n}")' for n in parts)
            added(archive, "package/index.js", f"exports.sum = {sums};\n".encode())
            for part in parts:
                added(archive, f"package/lib/part{part}.js", f"module.exports = {chance.randrange(1000)};\n".encode())


def ledger(_options, _chance, folder):
    shutil.copy(Path(__file__).with_name("ledger.py"), folder)


def small(_options, _chance, folder):
    """A package of Python's that builds its own wheel, since no other package can be fetched; and Debian's pip, unpacked and compiled once."""
    run("bash", "-c", 'for wheel in /usr/share/python-wheels/pip-*.whl; do /usr/bin/python3 -m zipfile -e "$wheel" "$0"; done', folder / "pip")
    run("/usr/bin/python3", "-m", "compileall", "-q", folder / "pip")
    written(folder / "small", {
        "pyproject.toml": '[project]\nname = "small"\nversion = "1.0"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "small/__init__.py": "from importlib import resources\n\ndef main():\n    print(resources.files('small').joinpath('words.txt').read_text().strip())\n",
        "small/words.txt": "it is installed\n",
        "backend.py": """import os, zipfile

INFO = "small-1.0.dist-info"

def build_wheel(folder, settings=None, metadata=None):
    name = "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for file in ["__init__.py", "words.txt"]:
            wheel.write(f"small/{file}")
        wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n")
        wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\\nGenerator: small\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{INFO}/entry_points.txt", "[console_scripts]\\nsmall = small:main\\n")
        wheel.writestr(f"{INFO}/RECORD", "")
    return name
""",
    })


def module(_options, _chance, folder):
    """A module of Go's with two packages and their tests, of the standard library alone."""
    test = 'package %s\n\nimport (\n\t"os"\n\t"path/filepath"\n\t"testing"\n)\n\nfunc TestFile(t *testing.T) {\n' \
           '\tname := filepath.Join(t.TempDir(), "file")\n\tif os.WriteFile(name, []byte{%d}, 0o600) != nil || Sum([]int{1, 2}) != 3 {\n\t\tt.Fatal(name)\n\t}\n}\n'
    sum_of = "package %s\n\n// Sum adds.\nfunc Sum(all []int) (sum int) {\n\tfor _, one := range all {\n\t\tsum += one\n\t}\n\treturn\n}\n"
    parts = {f"{name}/{name}{end}.go": text for name in ("one", "two") for end, text in (("", sum_of % name), ("_test", test % (name, len(name))))}
    main = 'package main\n\nimport (\n\t"example.test/module/one"\n\t"example.test/module/two"\n)\n\nfunc main() { println(one.Sum([]int{1}) + two.Sum([]int{2})) }\n'
    written(folder / "module", {"go.mod": "module example.test/module\n\ngo 1.19\n", "main.go": main, **parts})


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
