# Two commands do all the set-up on a fresh Debian machine:
#   make up     builds Andrew, starts a cell with a mount, and says where and what to try next
#   make test   everything that CI runs; installs by apt what the tests need

CARGO  ?= cargo
PREFIX ?= /usr/local
STATE  ?= $(CURDIR)/target/cell/state
MOUNT  ?= $(CURDIR)/target/cell/afs
BINARY := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/release/andrew

SHARE  := $(DESTDIR)$(PREFIX)/share

.PHONY: help build install uninstall up down test deps deps-build lint unit live fuzz soak clean

help:
	@sed -n '2,3s/^#  *//p' Makefile
	@echo 'make down   stops the cell that make up started'
	@echo 'make install, uninstall   program, manual pages and completions, to PREFIX (/usr/local) below DESTDIR'
	@echo 'make unit   the tests that need neither root nor peers; ANDREW_SEEDS=N for more simulated worlds'
	@echo 'make live   cells with real mounts and real peers (as root)'
	@echo 'make soak   long runs of databases, exercisers, git and everyday programs on cells whose processes are killed (as root): docs/long-runs.md'
	@echo 'make lint   format, lints, dependencies;  make fuzz  every fuzz target, SECONDS=60 each (nightly compiler)'

build: deps-build
	$(CARGO) build --release -p andrew

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

up: build
	mkdir -p '$(STATE)' '$(MOUNT)'
	$(BINARY) up --state '$(STATE)' --mount '$(MOUNT)' --detach
	@echo "(the program is $(BINARY), 'make install' puts it where it is found; 'make down' stops the cell)"

down:
	$(BINARY) down --state '$(STATE)'

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
	$(CARGO) test --workspace --exclude andrew-tests
	$(CARGO) test -p andrew-tests --lib --test picture --test complete --test simulated --test contents --test adversary --test cited

# They share the machine's mounts: one at a time.
live: build
	ANDREW='$(BINARY)' $(CARGO) test -p andrew-tests --no-fail-fast -- --test-threads=1

SECONDS ?= 60
fuzz:
	scripts/fuzz $(SECONDS)

# PARTS=databases, KILLS=1000 or MINUTES=240 for other ones; SOAK for further words of scripts/soak.
PARTS   ?= databases exercisers git work
KILLS   ?= 100
MINUTES ?= 10
soak: build
	scripts/install-needed soak
	scripts/soak $(PARTS) --andrew '$(BINARY)' --kills $(KILLS) --minutes $(MINUTES) $(SOAK)

clean: ; $(CARGO) clean
