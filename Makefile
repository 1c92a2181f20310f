# `make help` lists the targets.

PREFIX ?= /usr/local
LIBRARY := build/lib/polycast
CARGO_OUT := $(or $(CARGO_TARGET_DIR),target)
INSTALLED := $(DESTDIR)$(PREFIX)

# What a build is made from: `make install` builds again only when something of it is newer.
SOURCES := Makefile Cargo.toml Cargo.lock README.md CHANGELOG.md CONTRIBUTING.md LICENSE scripts/setup.sh scripts/stage.sh \
    $(shell find bench crates docs doors examples include packaging tuning fuzz/README.md tests/README.md tests/cases/README.md -type f -not -path '*/tests/*')

# Another MPI that is named wants its door, whatever was built before.
ifeq ($(origin MPICC),command line)
BUILT := build
else
BUILT := build/built
endif

.NOTPARALLEL:
.PHONY: build help setup rust doors spank stage demo check test test-all soak fuzz conformance nightly install install-debug uninstall deb wheel archive test-wheel dist clean

build: setup doors ## the library, its doors, the tool, man pages: all into build/ and target/ (default)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 16
	@echo
	@echo 'PREFIX=$(PREFIX)  where to install, below DESTDIR if that is set'
	@echo 'MPICC="mpicc …"   compiler wrappers of the MPIs to be served; default: mpicc, mpicc.openmpi, mpicc.mpich, where found'

setup:
	@MPICC="$(MPICC)" scripts/setup.sh build

rust:
	cargo build --release --locked -p polycast-runtime
	cargo build --profile tool --locked -p polycast-cli
	@mkdir -p $(LIBRARY)
	@cp $(CARGO_OUT)/release/libpolycast.so $(LIBRARY)/.new && mv $(LIBRARY)/.new $(LIBRARY)/libpolycast.so

doors: rust ## only the doors: make doors MPICC=/opt/mpi/bin/mpicc adds one
	@doors/build.sh $(LIBRARY) $(MPICC)
	@old=$(LIBRARY)/slurm/spank_polycast.so; if [ packaging/slurm/spank_polycast.c -nt $$old ] && [ -e $$old ]; then packaging/slurm/build.sh $(LIBRARY); fi
	@$(MAKE) --no-print-directory stage

spank: $(BUILT) ## the plug-in for srun --polycast, too: needs Slurm's headers; then make install
	@packaging/slurm/build.sh $(LIBRARY)
	@$(MAKE) stage

stage:
	@scripts/stage.sh $(CARGO_OUT)/tool/polycast $(LIBRARY) build/stage build/debug
	@touch build/built

build/built: $(SOURCES)
	@$(MAKE) build

demo: build ## stock MPI beside polycast on emulated clusters of 16 hosts; about four minutes
	@scripts/setup.sh demo
	@scripts/demo.sh

check: ## formatting, lints and the pure tests: the inner loop
	@scripts/setup.sh test
	@scripts/check.sh

test: ## every test but the longest, and the lints
	@scripts/setup.sh test
	@$(MAKE) build
	@scripts/test.sh

test-all: test ## and those that take or need more
	@if [ -x scripts/setup-all.sh ]; then scripts/setup-all.sh; fi
	@scripts/test-all.sh

ROUNDS ?= 20
SEED ?= 0
STOCK ?= 0
soak: ## jobs in a lab while ranks die, links go down and strangers send: make soak ROUNDS=1000 [FAULT=killed] [STOCK=1: without polycast]
	@scripts/setup.sh test
	@$(MAKE) build
	@cargo test --quiet --locked --workspace --test soak -- ROUNDS=$(ROUNDS) SEED=$(SEED) FAULT=$(FAULT) STOCK=$(STOCK)

SECONDS ?= 10
fuzz: ## every decoder and a node of the protocol with mutations of their corpus, each for SECONDS=10, or ONLY=datagram
	@SECONDS=$(SECONDS) ONLY=$(ONLY) cargo test --quiet --release --locked -p polycast-fuzz-bodies --test replay -- \
	    --ignored --exact for_some_seconds --nocapture

nightly: ## ThreadSanitizer and Miri (needs a nightly toolchain), and MPIs from PyPI
	@scripts/setup.sh test
	@$(MAKE) build
	@scripts/nightly.sh

conformance: ## mpi4py's own tests on five MPIs with every algorithm; three quarters of an hour, or ONLY="mpich lab multicast-pull"
	@scripts/setup.sh test
	@$(MAKE) build
	@cargo test --quiet --locked --workspace --test conformance -- $(ONLY)

install: $(BUILT) ## copies what is built to PREFIX (builds first if need be)
	@scripts/install.sh build/stage "$(INSTALLED)"

install-debug: build/built ## debug information beside what is installed
	@scripts/install.sh build/debug "$(INSTALLED)"

deb: $(BUILT) ## Debian packages in build/deb, of what is built
	@rm -rf build/deb
	@packaging/debian/build.sh build/stage build/deb

build/portable/built: $(SOURCES)
	@scripts/setup.sh wheel
	@packaging/portable/build.sh build/portable
	@touch $@

wheel: build/portable/built ## a wheel for pip in build/wheel, for every Linux on x86_64 with glibc 2.28 or newer
	@PYTHON=build/portable/tools/bin/python packaging/wheel/build.sh build/portable/stage build/wheel manylinux_2_28_x86_64

archive: build/portable/built ## the same files to be unpacked anywhere: build/polycast-VERSION-linux-x86_64.tar.gz
	@packaging/portable/archive.sh build/portable/stage build

test-wheel: wheel archive ## the tests of wheel, archive, sources and recipes: what it takes to have polycast
	@scripts/setup.sh test
	@$(MAKE) build
	@cargo test --locked --workspace --test jobs -- --include-ignored wheel:: recipes::

dist: ## the sources of this commit and their crates as build/polycast-VERSION.tar.gz, which builds without a network
	@scripts/dist.sh

uninstall: ## removes what install copied
	rm -rf "$(INSTALLED)/lib/polycast" "$(INSTALLED)/share/polycast" "$(INSTALLED)/share/doc/polycast"
	rm -rf "$(INSTALLED)/lib/cmake/polycast" "$(INSTALLED)/share/modulefiles/polycast"
	rm -f "$(INSTALLED)/lib/pkgconfig/polycast.pc"
	rm -f "$(INSTALLED)/bin/polycast" "$(INSTALLED)/bin/.debug/polycast.debug" "$(INSTALLED)/include/polycast.h" "$(INSTALLED)/include/polycast-program.h" \
	    "$(INSTALLED)"/share/man/man1/polycast.1.gz "$(INSTALLED)"/share/man/man1/polycast-*.1.gz \
	    "$(INSTALLED)/share/bash-completion/completions/polycast" "$(INSTALLED)/share/zsh/site-functions/_polycast" \
	    "$(INSTALLED)/share/fish/vendor_completions.d/polycast.fish"

clean: ## removes everything that was built
	cargo clean
	rm -rf build
