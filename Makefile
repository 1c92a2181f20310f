# make build | doors | demo | test | install PREFIX=… | clean; see README.md

PREFIX ?= /usr/local
MPICC ?= mpicc.openmpi mpicc.mpich
LIBRARY := build/lib/polycast
CARGO_OUT := $(or $(CARGO_TARGET_DIR),target)/release

.PHONY: build setup rust doors demo test lint bench install uninstall clean

build: setup rust doors

setup:
	@scripts/setup.sh

rust:
	cargo build --release --locked
	@mkdir -p $(LIBRARY)
	@cp $(CARGO_OUT)/libpolycast.so $(LIBRARY)/.new && mv $(LIBRARY)/.new $(LIBRARY)/libpolycast.so

doors: rust
	@doors/build.sh $(LIBRARY) $(MPICC)

demo: build
	@scripts/demo.sh

test: build lint
	@scripts/test.sh

lint:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps -p polycast-core -p polycast-sim -p polycast-lab
	clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

install: build
	install -D -m 755 $(CARGO_OUT)/polycast $(DESTDIR)$(PREFIX)/bin/polycast
	mkdir -p $(DESTDIR)$(PREFIX)/lib/polycast $(DESTDIR)$(PREFIX)/share/polycast
	cp -r $(LIBRARY)/. $(DESTDIR)$(PREFIX)/lib/polycast/
	install -D -m 644 include/polycast.h $(DESTDIR)$(PREFIX)/include/polycast.h
	install -m 644 tuning/*.toml README.md LICENSE $(DESTDIR)$(PREFIX)/share/polycast/
	@echo "installed: $(DESTDIR)$(PREFIX)/bin/polycast"

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/bin/polycast $(DESTDIR)$(PREFIX)/lib/polycast $(DESTDIR)$(PREFIX)/share/polycast $(DESTDIR)$(PREFIX)/include/polycast.h

clean:
	cargo clean
	rm -rf build
