# Two commands do all the set-up on a fresh Debian machine:
#   make up     builds Andrew, starts a cell with a mount, and says where and what to try next
#   make test   everything that CI runs; installs by apt what the tests need

CARGO  ?= cargo
PREFIX ?= /usr/local
STATE  ?= $(CURDIR)/target/cell/state
MOUNT  ?= $(CURDIR)/target/cell/afs
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BINARY := $(TARGET)/release/andrew
# What make up runs: built in minutes, less optimised than what make install installs.
QUICK  := $(TARGET)/quick/andrew

SHARE  := $(DESTDIR)$(PREFIX)/share

.PHONY: help check build quick install uninstall up down test deps deps-build lint unit live fuzz programs soak without-defence clean

help:
	@sed -n '2,3s/^#  *//p' Makefile
	@echo 'make check  format, lints and unit tests of the crates that changed: seconds after an edit'
	@echo 'make down   stops the cell that make up started'
	@echo 'make install, uninstall   program, manual pages and completions, to PREFIX (/usr/local) below DESTDIR'
	@echo 'make unit   the tests that need neither root nor peers; ANDREW_SEEDS=N for more simulated worlds'
	@echo 'make live   cells with real mounts and real peers (as root)'
	@echo 'make programs   suites and programs of others on mounts beside the local disk, case by case (as root): docs/programs.md'
	@echo 'make soak   long runs of databases, exercisers, git and everyday programs on cells whose processes are killed (as root): docs/long-runs.md'
	@echo 'make without-defence   defences taken out of the source by chance, COUNT=25 of them: a test that is named for each has to fail'
	@echo 'make lint   format, lints, dependencies;  make fuzz  every fuzz target, SECONDS=60 each (nightly compiler)'

check:
	scripts/check

build: deps-build
	$(CARGO) build --release -p andrew

quick: deps-build
	$(CARGO) build --profile quick -p andrew

# Builds only what is not there: as root it is often run without the compiler.
$(BINARY):
	$(MAKE) build

install: $(BINARY)
	install -D -m 755 '$(BINARY)' '$(DESTDIR)$(PREFIX)/bin/andrew'
	'$(BINARY)' man --out '$(SHARE)/man/man1'
	mkdir -p '$(SHARE)/bash-completion/completions' '$(SHARE)/zsh/site-functions' '$(SHARE)/fish/vendor_completions.d'
	'$(BINARY)' completions bash >'$(SHARE)/bash-completion/completions/andrew'
	'$(BINARY)' completions zsh >'$(SHARE)/zsh/site-functions/_andrew'
	'$(BINARY)' completions fish >'$(SHARE)/fish/vendor_completions.d/andrew.fish'

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/andrew' '$(SHARE)'/man/man1/andrew.1 '$(SHARE)'/man/man1/andrew-*.1
	rm -f '$(SHARE)/bash-completion/completions/andrew' '$(SHARE)/zsh/site-functions/_andrew' '$(SHARE)/fish/vendor_completions.d/andrew.fish'

up: quick
	mkdir -p '$(STATE)' '$(MOUNT)'
	$(QUICK) up --state '$(STATE)' --mount '$(MOUNT)' --detach
	@echo "(the program is $(QUICK); 'make install' builds a faster one and puts it where it is found; 'make down' stops the cell)"

down:
	$(QUICK) down --state '$(STATE)'

test:
	scripts/run-tests

deps:
	scripts/install-needed test

deps-build:
	@scripts/install-needed build

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	scripts/check-dependencies

unit:
	@scripts/install-needed runner
	$(CARGO) nextest run --workspace -E 'not ($(LIVE))'

LIVE := package(andrew-tests) and kind(test) and not test(/^(circles|cited|decisions|defences|picture|words|complete|simulated|contents|adversary)::/)
live: quick
	$(CARGO) build --profile quick -p afs-lab
	@scripts/install-needed runner
	ANDREW='$(QUICK)' $(CARGO) nextest run -p andrew-tests -E '$(LIVE)'

SECONDS ?= 60
fuzz:
	scripts/fuzz $(SECONDS)

# PROGRAMS='--only cpython --mount user' and the like: scripts/programs --help.
programs: build
	scripts/install-needed programs
	scripts/programs --andrew '$(BINARY)' $(PROGRAMS)

# PARTS=databases, KILLS=1000 or MINUTES=240 for other ones; SOAK for further words of scripts/soak.
PARTS   ?= databases files exercisers git work
KILLS   ?= 100
MINUTES ?= 10
soak: build
	scripts/install-needed soak
	scripts/soak $(PARTS) --andrew '$(BINARY)' --kills $(KILLS) --minutes $(MINUTES) $(SOAK)

# COUNT=0 takes all; DEFENCES=file/past.rs those with that in their name or file, '--seed S' those of an earlier run.
COUNT ?= 25
without-defence:
	@scripts/install-needed runner
	scripts/without-defence --count $(COUNT) $(DEFENCES)

clean: ; $(CARGO) clean
