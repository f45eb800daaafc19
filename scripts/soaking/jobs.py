"""Jobs of everyday programs, as scripts of bash: the same words in each place have to print the same and to leave the same tree."""

from dataclasses import dataclass

JOURNALS = ["delete", "wal", "truncate", "persist"]


@dataclass(frozen=True)
class Step:
    """A script that runs in the directory of its job, and ends at its first command that fails."""

    name: str
    script: str
    # The times of what is left are set by the script, and not by the clock.
    sets_times: bool = False


@dataclass(frozen=True)
class Job:
    name: str
    steps: list
    # Programs without which the job is left out.
    needs: tuple = ()
    # Beginnings of names that are other ones, or have other contents, in each run: these are not compared with the local disk's.
    own: tuple = ()


GIT = Job("git", needs=("git",), own=("tree/.git/index", "tree/.git/objects/"), steps=[
    Step("clone", """
        git clone -q "$INPUT/repository.bundle" tree
        cd tree
        git remote remove origin
        for commit in $(cat "$INPUT/commits"); do
            git checkout -q "$commit"
            git status --porcelain
            git rev-parse 'HEAD^{tree}'
            git ls-files | wc -l
        done"""),
    Step("change", """
        cd tree
        git checkout -q -B work
        for round in 1 2 3 4 5; do
            for file in $(git ls-files | sed -n "$((40 * round)),$((40 * round + 40))p"); do test -L "$file" || echo "round $round" >> "$file"; done
            git rm -q "$(git ls-files | sed -n "${round}p")"
            mkdir -p made/$round
            seq $round 5000 > made/$round/numbers
            git add -A
            git commit -q -m "round $round"
            seq 100 > made/$round/later
            git stash -q -u
            git status --porcelain
            git stash pop -q
            git add -A
            git commit -q --amend --no-edit
        done
        git checkout -q -b side HEAD~3
        seq 7 > made/side
        git add -A
        git commit -q -m side
        git checkout -q work
        git rebase -q side
        git checkout -q -b merged HEAD~2
        git mv made remade
        git commit -q -m moved
        git merge -q -m merged work
        git log --format='%H %T' -n 12
        git status --porcelain"""),
    Step("gc", """
        cd tree
        git gc -q --prune=now
        git fsck --full --strict
        git count-objects -v | grep -v size
        git status --porcelain
        git for-each-ref
        git reset -q --hard HEAD~2
        git clean -q -d -f -x
        git status --porcelain"""),
])

TREES = Job("trees", needs=("tar",), steps=[
    Step("tar", """
        tar xpf "$INPUT/files.tar"
        tar c --sort=name --exclude='s*l' --numeric-owner --owner=0 --group=0 files | sha256sum""", sets_times=True),
    Step("cp", """
        cp -a files copy
        diff -r --no-dereference files copy
        tar c --sort=name --exclude='s*l' --numeric-owner --owner=0 --group=0 -C copy . | sha256sum""", sets_times=True),
    Step("change", """
        cd copy
        find . -type f -name '*3' -exec sh -c 'for file; do echo more >> "$file"; done' sh {} +
        find . -type f -name '*5' -exec truncate -s 1000 {} +
        find . -type f -name '*7' -exec sh -c 'for file; do mv "$file" "$file.moved"; done' sh {} +
        find . -type f -name '*9' -delete
        find . -type f -name '*1' -exec chmod 600 {} + -exec touch -d '2020-02-02 UTC' {} +
        for folder in d*; do
            mkdir "new-$folder"
            mv "$folder"/* "new-$folder/"
            rmdir "$folder"
        done
        grep -rlx more . | sort | sha256sum"""),
    Step("rm", """
        rm -rf files
        ls
        cp -a copy files
        rm -rf copy
        find files | sort | sha256sum"""),
])

MAKE = Job("make", needs=("make", "gcc"), steps=[
    Step("make", """
        tar xf "$INPUT/program.tar"
        cd program
        make -s -j2
        ./program
        make -q
        sha256sum program"""),
    # The times of a mount are whole seconds, so what is older is made so.
    Step("again", """
        cd program
        find . -name '*.[do]' -exec touch -d '2 hours ago' {} +
        find . -name '*.[ch]' -exec touch -d '3 hours ago' {} +
        touch -d '1 hour ago' m7.h
        make -n | grep -c -e ' -c '
        make -s -j2
        ./program
        make -q"""),
])

CARGO = Job("cargo", needs=("cargo",), own=("source/target/",), steps=[
    Step("build", """
        mkdir source
        tar xf "$INPUT/source.tar" -C source
        cd source
        cargo build -q --offline -p "$CRATE"
        find target -name 'lib*.rlib' | wc -l"""),
    Step("again", """
        cd source
        cargo build --offline -p "$CRATE" 2>&1 | sed -n 's/Compiling//p' | wc -l
        touch -d '1 hour' crates/*/"$CRATE"/src/lib.rs
        cargo build --offline -p "$CRATE" 2>&1 | sed -n 's/Compiling//p' | wc -l
        touch -d '1 hour ago' crates/*/"$CRATE"/src/lib.rs
        cargo clean -q
        ls"""),
])

NPM = Job("npm", needs=("npm", "node"), steps=[
    Step("install", """
        mkdir project
        cp -r "$INPUT/packages" project/
        cd project
        echo '{"name":"project","version":"1.0.0"}' > package.json
        npm install --offline --no-audit --no-fund --loglevel=error --cache "$LOCAL/npm" ./packages/*.tgz > /dev/null
        ls node_modules
        node -e 'let sum = 0; for (const name of require("fs").readdirSync("node_modules")) if (name[0] != ".") sum += require(name).sum; console.log(sum)'"""),
    Step("again", """
        cd project
        rm -rf node_modules
        npm ci --offline --no-audit --no-fund --loglevel=error --cache "$LOCAL/npm" > /dev/null
        npm uninstall --offline --no-audit --no-fund --loglevel=error --cache "$LOCAL/npm" package1 > /dev/null
        ls node_modules"""),
])

SQLITE = Job("sqlite", needs=("sqlite3",), steps=[
    Step(mode, f"""
        python3 "$INPUT/ledger.py" sqlite {mode}.sqlite "$LOCAL/{mode}" {mode} full "$SEED" "$TRANSACTIONS"
        python3 "$INPUT/ledger.py" verify {mode}.sqlite "$LOCAL/{mode}"
        sqlite3 {mode}.sqlite .dump | sha256sum
        sqlite3 {mode}.sqlite 'delete from ledger where n % 3 = 0; vacuum; pragma integrity_check; select count(*) from ledger'
        ls""")
    for mode in JOURNALS
])

# The environment has the paths of its place in its scripts, and so do compiled modules.
PIP = Job("pip", needs=("python3",), own=("environment/", "small/__pycache__/"), steps=[
    Step("install", """
        cp -r "$INPUT/small" .
        /usr/bin/python3 -m venv --without-pip environment
        pip() { PYTHONPATH="$INPUT/pip" environment/bin/python -m pip --disable-pip-version-check "$@"; }
        pip install -q --no-index ./small
        environment/bin/small
        pip list --format=freeze --exclude pip"""),
    Step("again", """
        pip() { PYTHONPATH="$INPUT/pip" environment/bin/python -m pip --disable-pip-version-check "$@"; }
        sed -i 's/1[.]0/1.1/' small/pyproject.toml small/backend.py
        pip install -q --no-index --upgrade ./small
        pip check
        pip show -f small | grep -v -e Location
        pip uninstall -q -y small
        find environment -name 'small*'"""),
])

GO = Job("go", needs=("go",), own=("module/program",), steps=[
    Step("test", """
        cp -r "$INPUT/module" .
        cd module
        go vet ./...
        go test -count=1 ./... | sed 's/\\t[0-9.]*s$//'
        go build -o program .
        ./program"""),
])

ALL = {job.name: job for job in (GIT, TREES, MAKE, CARGO, NPM, SQLITE, PIP, GO)}


def around(folder, local, seed, transactions, crate, registry):
    """The variables that the scripts read: inputs, a directory of the local disk, and settings that make all runs the same."""
    names = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
             for what, value in (("NAME", "Soak"), ("EMAIL", "soak@example.org"), ("DATE", "2026-01-02T03:04:05Z"))}
    return {"INPUT": folder, "LOCAL": local, "SEED": seed, "TRANSACTIONS": transactions, "CRATE": crate,
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": 1, "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": 0, **names,
            "CARGO_HOME": registry, "CARGO_NET_OFFLINE": "true", "CARGO_INCREMENTAL": 0,
            "GOCACHE": f"{local}/go-build", "GOPATH": f"{local}/go", "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
