# The one door to everything here. `make help` lists what there is.
# Plain output throughout, no network beyond what cargo fetches, nothing written outside this folder.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# The disk that `make run` imitates, how large its database is (80 MiB a warehouse) and for how long it
# runs: any value that `weir bench` takes.
DISK ?= 2000iops,32MiB
WAREHOUSES ?= 4
SECONDS_RUN ?= 60
DIR ?= ./weir-data
# Where `make run` serves its charts and metrics.
HTTP ?= 127.0.0.1:9600
# More options for `make run`, `make bench` and `make rivals`.
ARGS ?=
# Seconds for each fuzz target.
SECONDS ?= 60
FUZZ_TARGETS := log_scan page_read op_decode control_decode warm_decode contents_decode logstore_formats backup_read export_read crypt_read sizes

export CARGO_TERM_COLOR ?= never
export CARGO_TERM_PROGRESS_WHEN ?= never

.PHONY: install uninstall
.PHONY: help run update tpcc plugin server compare apps deb plugin-test sanitize test lane-engine lane-server report-test tools fmt clippy tidy unit \
	loom tsan miri doc book test-in-server mysql bench rivals rivals-tools rivals-test lab-cost fuzz clean

help:
	@echo "make run     TPC-C on an imitated slow disk, one line a second, then its twelve consistency"
	@echo "             conditions; keeps $(DIR) and goes on with it the next time"
	@echo "make update  durable one-row updates on the same disk"
	@echo "make tpcc    TPC-C on this machine's own disk, as fast as it goes"
	@echo "make plugin  ENGINE=Weir for the installed MariaDB (Debian 12; installs what is missing)"
	@echo "make plugin-test  the plugin against InnoDB, the server's own suite, and kill -9 (20 minutes)"
	@echo "make plugin server plugin-test deb compare apps SERVER=11.8  the same with MariaDB 11.8, in a Debian 13 root below target"
	@echo "make server  a private MariaDB with Weir on a socket below ./weir-data, until Ctrl-C"
	@echo "make compare InnoDB, MyRocks and Weir in one MariaDB: sysbench and TPC-C, on this disk and on a"
	@echo "             limited one (an hour and a half; ARGS=--quick: half an hour); the report is in $(COMPARE)"
	@echo "make apps    WordPress, MediaWiki, Django's and SQLAlchemy's own suites on InnoDB and on Weir: the same answers"
	@echo "             (half an hour; APPS='wordpress django' only those; installs them from Debian and the Python registry)"
	@echo "make deb     a Debian package of the plugin for the installed MariaDB, tried out"
	@echo "make sanitize  the plugin's C++ under the address and undefined-behaviour sanitizers"
	@echo "make test    everything that must hold: format, lints, tidy, tests, kill -9, loom, docs, the plugin"
	@echo "make mysql   TPC-C through SQL against a private MariaDB (weir bench tpcc --mysql)"
	@echo "make report-test  reports and the live page in a browser, metrics in Prometheus"
	@echo "make book    the pages of docs as a book in target/book (needs mdbook)"
	@echo "make bench   the figures of docs/benchmarks.md on this machine's own disk"
	@echo "make rivals  the same workloads on RocksDB, WiredTiger, LMDB, redb, fjall, SQLite and Weir,"
	@echo "             with a report (some hours; ARGS=--quick ten minutes); make rivals-test"
	@echo "make lab-cost  what the live page and the metrics cost (less than 1 % of throughput)"
	@echo "make install  the C library (shared and static), weir.h, weir.pc, the command weir and its manual pages,"
	@echo "             below PREFIX=/usr/local; DESTDIR= is honoured; make uninstall takes them away"
	@echo "make python  the wheel for Python and its tests (needs PyPI)"
	@echo "make python-bench  weirdb, lmdb and rocksdict from Python, the same work in turns"
	@echo "make tsan    tests of the crates below the engine under the thread sanitizer; make miri (both need nightly)"
	@echo "make oldest  checks that Rust $(OLDEST) compiles it; make musl, make arm: its tests with musl, and for 64-bit ARM (emulated)"
	@echo "make fuzz    each fuzz target for SECONDS=$(SECONDS) (needs a nightly toolchain)"
	@echo "make clean   remove what was built and measured, the database of make run included"
	@echo "make run takes WAREHOUSES=$(WAREHOUSES) DISK=$(DISK) SECONDS_RUN=$(SECONDS_RUN) DIR=$(DIR)"
	@echo "HTTP=$(HTTP) ARGS=..."

# ---- run ------------------------------------------------------------------------------------------

run: target/release/weir
	@echo "TPC-C on a disk limited to $(DISK), loaded at full speed. Ctrl-C stops and sums up; kill -9 is"
	@echo "fine too: the next 'make run' recovers $(DIR) and goes on."
	@target/release/weir bench tpcc --dir $(DIR) --disk $(DISK) --warehouses $(WAREHOUSES) \
		--seconds $(SECONDS_RUN) --warmup 10 --http $(HTTP) $(ARGS)

update: target/release/weir
	@target/release/weir bench update --dir $(DIR) --disk $(DISK) --seconds $(SECONDS_RUN) $(ARGS)

tpcc: target/release/weir
	@target/release/weir bench tpcc --dir $(DIR)/tpcc --threads 32 --pool 2GiB --log 1GiB --seconds $(SECONDS_RUN) $(ARGS)

# Always asks cargo, which knows what is up to date.
.PHONY: target/release/weir
target/release/weir: tools
	@echo "Building weir (the first time takes a minute or two)."
	@$(CARGO) build --release --locked --quiet --package weir-cli --target-dir target

# ---- MariaDB ---------------------------------------------------------------------------------------

# The server: the one that is installed (Debian 12), or SERVER=11.8, that of Debian 13 in a root of its own. SOURCES_AT: where
# its headers are, or come to be.
SERVER ?=
ifeq ($(SERVER),)
PLUGIN_BUILD := $(CURDIR)/target/plugin
SERVER_ROOT :=
else ifeq ($(SERVER),11.8)
PLUGIN_BUILD := $(CURDIR)/target/plugin-11.8
SERVER_ROOT ?= $(CURDIR)/target/root-trixie
else
$(error SERVER=$(SERVER): nothing (the server that is installed), or 11.8)
endif
PLUGIN_MAKE = $(MAKE) --no-print-directory -f plugin/mariadb/Makefile BUILD=$(PLUGIN_BUILD) SERVER_ROOT=$(SERVER_ROOT) \
	$(if $(SOURCES_AT),SOURCES_AT=$(SOURCES_AT))

# Needs Debian 12, and root where packages are missing. docs: docs/mariadb/README.md.
plugin: tools plugin-setup
	@$(PLUGIN_MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j2) all
	@echo "$(patsubst $(CURDIR)/%,%,$(PLUGIN_BUILD))/ha_weir.so is ready"

.PHONY: plugin-setup
plugin-setup:
	@$(if $(SERVER_ROOT),plugin/mariadb/tools/root.sh $(SERVER_ROOT) trixie)
	@$(PLUGIN_MAKE) setup

# In a root, the socket is in this tree all the same.
server: plugin
	@$(if $(SERVER_ROOT),plugin/mariadb/tools/root.sh $(SERVER_ROOT) --in $(CURDIR)) \
		$(CURDIR)/plugin/mariadb/tools/server.sh $(PLUGIN_BUILD)/ha_weir.so $(CURDIR)/weir-data/server$(if $(SERVER),-$(SERVER)) $(ARGS)

# The plugin's C++ under sanitizers; the vptr check wants to know the server's classes, which it does not.
SANITIZE := -fsanitize=address,undefined -fno-sanitize=vptr,alignment -fno-sanitize-recover=undefined
sanitize: plugin
	@[ -z "$(SERVER)" ] || { echo "make sanitize: the sanitizers are those of this system: with the server that is installed, without SERVER"; exit 1; }
	@$(MAKE) --no-print-directory -f plugin/mariadb/Makefile BUILD=$(CURDIR)/target/sanitize SOURCES_AT=$(CURDIR)/target/plugin/mariadb-source \
		EXTRA_CXXFLAGS="$(SANITIZE) -U_FORTIFY_SOURCE -O1" EXTRA_LDFLAGS="$(SANITIZE)" all
	@plugin/mariadb/test/sanitize.sh target/sanitize target/sanitize/test

# Compiled on its own: no path of this machine may be in it. Tried out where the server is.
DEB := target/deb$(if $(SERVER),-$(SERVER))
deb: plugin
	@export RUSTFLAGS="--remap-path-prefix=$(CURDIR)=weir --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=cargo" \
		CARGO_TARGET_DIR=$(CURDIR)/target/deb/cargo; \
	$(MAKE) --no-print-directory -f plugin/mariadb/Makefile BUILD=$(CURDIR)/$(DEB) SERVER_ROOT=$(SERVER_ROOT) EXTRA_CXXFLAGS=-ffile-prefix-map=$(CURDIR)=weir \
		SOURCES_AT=$(or $(SOURCES_AT),$(PLUGIN_BUILD)/mariadb-source) all && \
		$(CARGO) build --release --locked --quiet --package weir-cli
	@package=$$(SERVER_ROOT=$(SERVER_ROOT) plugin/mariadb/packaging/build.sh $(DEB)/ha_weir.so target/deb/cargo/release/weir $(DEB)) && \
		$(if $(SERVER_ROOT),plugin/mariadb/tools/root.sh $(SERVER_ROOT) --in $(CURDIR) env CARGO_HOME="$${CARGO_HOME:-$$HOME/.cargo}") \
		$(CURDIR)/plugin/mariadb/packaging/test.sh "$$package" $(CURDIR)/$(DEB)/test && echo "$$package"

# sysbench and MyRocks are fetched if missing; the limited disk is the kernel's doing and needs root.
COMPARE ?= ./weir-data/compare
ifneq ($(SERVER_ROOT),)
compare: plugin
	@$(CARGO) build --release --locked --quiet --package weir-cli --features mysql --target-dir target/compare
	@plugin/mariadb/compare/run_in_root.sh $(PLUGIN_BUILD) $(SERVER_ROOT) $(COMPARE)-$(SERVER) target/compare/release/weir $(ARGS)
else
compare: plugin
	@command -v sysbench >/dev/null || { \
		apt-get update -q && apt-get install -q -y --no-install-recommends sysbench; }
	@$(CARGO) build --release --locked --quiet --package weir-cli --features mysql --target-dir target/compare
	@plugin/mariadb/compare/run.sh target/plugin $(COMPARE) target/compare/release/weir $(ARGS)
	@echo; echo "What a row costs by its size, InnoDB and Weir in turns:"; rm -rf "$(COMPARE)-sizes"
	@plugin/mariadb/compare/sizes.sh target/plugin/ha_weir.so "$(COMPARE)-sizes"
endif

# Needs root: the server's test program wants the plugin among the installed ones, and puts it away again.
ROUNDS ?= 3
# The command that restores in those tests; `make test` has built another one when they come to it.
BACKUP_PROFILE ?= release
ifneq ($(SERVER_ROOT),)
plugin-test: plugin
	@$(if $(SOURCES_AT),SOURCES_AT=$(SOURCES_AT)) SERVER_ROOT=$(SERVER_ROOT) \
		plugin/mariadb/test/run_in_root.sh $(PLUGIN_BUILD) $(SERVER_ROOT) $(ROUNDS)
	@if [ -e target/plugin/ha_weir.so ]; then \
		plugin/mariadb/test/upgrade.sh target/plugin/ha_weir.so $(PLUGIN_BUILD)/ha_weir.so $(SERVER_ROOT) $(PLUGIN_BUILD)/test/upgrade; \
	else \
		echo "plugin-test: WITHOUT the way from the server that is installed here, whose plugin has not been built (make plugin)"; \
	fi
else
plugin-test: plugin
	@$(MAKE) --no-print-directory -f plugin/mariadb/Makefile collations group_plan
	@plugin/mariadb/tools/peers.sh target/plugin/peers mariadb-backup mariadb-plugin-spider || true
	@pkg-config fuse3 2>/dev/null || apt-get install -q -y --no-install-recommends libfuse3-dev pkg-config >/dev/null 2>&1 || \
		echo "plugin-test: libfuse3-dev cannot be had: the power does not fail"
	@plugin/mariadb/test/run.sh target/plugin $(ROUNDS)
	@plugin/mariadb/test/force_recovery.sh target/plugin/ha_weir.so target/plugin/test/force-recovery
	@$(CARGO) build --profile $(BACKUP_PROFILE) --locked --quiet --workspace --bin weir --target-dir target
	@plugin/mariadb/test/backup.sh target/plugin/ha_weir.so target/plugin/test/backup target/$(BACKUP_PROFILE)/weir
	@plugin/mariadb/test/whole_backup.sh target/plugin/ha_weir.so target/plugin/test/whole-backup target/$(BACKUP_PROFILE)/weir target/plugin/peers
	@[ $(ROUNDS) = 1 ] || WEIR_STORE=LOG plugin/mariadb/test/whole_backup.sh target/plugin/ha_weir.so target/plugin/test/whole-backup target/$(BACKUP_PROFILE)/weir target/plugin/peers
	@plugin/mariadb/test/encrypted.sh target/plugin/ha_weir.so target/plugin/test/encrypted $(ROUNDS) target/$(BACKUP_PROFILE)/weir
	@plugin/mariadb/test/codec.sh target/plugin/ha_weir.so target/plugin/test/codec
	@plugin/mariadb/test/codec_alter.sh target/plugin/ha_weir.so target/plugin/test/codec-alter target/$(BACKUP_PROFILE)/weir
endif

# Each application runs at once in two servers with InnoDB and with Weir as the default engine, and must answer the same.
APPS ?=
apps: plugin
	@SERVER_ROOT=$(SERVER_ROOT) plugin/mariadb/apps/run.sh $(PLUGIN_BUILD)/ha_weir.so target/apps$(if $(SERVER),-$(SERVER)) $(APPS)

# ---- test -----------------------------------------------------------------------------------------

# Two lanes at once: the servers of the plugin's tests wait for the disk most of the time. Some of those tests watch the clock, so
# the other lane gives way. One run says all that fails: a lane goes on after a step that does.
# What failed stands at the end again: the lanes' lines are mixed, and long output is cut in the middle where it is kept.
test: tools fmt tidy
	@mkdir -p target; rm -f target/lane-*.log
	@$(MAKE) --no-print-directory -j2 lane-engine lane-server || { \
		echo; echo "make test: FAILED. What the engine's lane said of it (target/lane-engine.log):"; \
		grep -E '^test .*FAILED|^error|panicked at|make test: failed' target/lane-engine.log | tail -n 40 || echo "(no failure)"; \
		echo "What differed in the server's lane (target/lane-server.log):"; \
		grep -A40 DIFFERENT target/lane-server.log | grep -v ': same as' | tail -n 80 || echo "(nothing)"; \
		echo "What the server's lane said last:"; tail -n 40 target/lane-server.log; exit 1; }
	@echo "make test: all passed"

# A make of its own: what it runs would look in vain for the job server of this one.
LANE_MAKE = env MAKEFLAGS="$(filter-out -j% --jobserver%,$(MAKEFLAGS))" $(MAKE) --no-print-directory

lane-engine:
	@{ failed=; for step in clippy unit loom doc; do begun=$$SECONDS; \
		nice -n 10 $(LANE_MAKE) $$step || failed="$$failed $$step"; \
		echo "make test: $$step took $$((SECONDS - begun)) s"; \
	done; [ -z "$$failed" ] || { echo "make test: failed:$$failed"; exit 1; }; } 2>&1 | tee target/lane-engine.log

lane-server:
	@$(LANE_MAKE) test-in-server 2>&1 | tee target/lane-server.log | sed -u 's/^/server: /'

# Where there is no server of that version to be had (another system, no root, no network) it says so and goes on;
# where there is one, the plugin's tests must pass.
test-in-server:
	@if [ "$$(id -u)" = 0 ] && $(MAKE) --no-print-directory -f plugin/mariadb/Makefile setup; then \
		$(MAKE) --no-print-directory plugin-test ROUNDS=1 BACKUP_PROFILE=checked; \
	else \
		echo "make test: WITHOUT the plugin's tests, which need Debian 12, root, and MariaDB's packages and source"; \
	fi
	@if [ -n "$(TEST_11_8)" ] && [ "$$(id -u)" = 0 ] && $(MAKE) --no-print-directory SERVER=11.8 plugin-setup; then \
		$(MAKE) --no-print-directory SERVER=11.8 plugin-test ROUNDS=1; \
	else \
		echo "make test: WITHOUT the plugin's tests on MariaDB 11.8: a root of Debian 13 is made for them, and they take as long"; \
		echo "make test: again (make test TEST_11_8=yes, or make plugin-test SERVER=11.8)"; \
	fi

# Reports in a real browser and metrics in a real Prometheus: Debian packages, installed if missing.
report-test: tools
	@command -v chromium >/dev/null && command -v prometheus >/dev/null || { \
		apt-get update -q && apt-get install -q -y --no-install-recommends chromium prometheus; }
	WEIR_REPORT_TEST=1 $(CARGO) test --release --locked --package weir-cli --test it report

# Installs only what is missing.
tools:
	@command -v $(CARGO) >/dev/null || { \
		echo "no cargo here; install Rust 1.88 or later from https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { \
		echo "no C linker; trying apt-get"; apt-get update -q && apt-get install -q -y gcc libc6-dev; }
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --package weirdb --all-features --all-targets --locked -- -D warnings

tidy:
	$(CARGO) run --quiet --locked --package xtask -- tidy
	$(CARGO) run --quiet --locked --package xtask -- licences

# All tests, of one build: the profile `checked` is as fast as `release`, which the simulator, the tests that kill a running
# process and raced histories want, and asserts what debug builds assert. The features of weirdb add tests and take none away.
# WEIR_LONG: as many histories as a release build checks.
unit:
	@[ "$$(id -u)" != 0 ] || command -v mkfs.xfs >/dev/null || apt-get install -q -y --no-install-recommends xfsprogs >/dev/null 2>&1 || \
		echo "unit: xfsprogs cannot be had: no atomic writes are tried"
	WEIR_LONG=yes $(CARGO) test --profile checked --workspace --locked --no-fail-fast \
		--features $(WEIRDB_FEATURES)
WEIRDB_FEATURES := weirdb/serde,weirdb/uuid,weirdb/time,weirdb/server,weirdb/testing

# Interleavings of the small protocols, within the bound on preemptions that each test sets (minutes on a
# busy machine); a build of its own, since loom replaces the atomics.
loom:
	RUSTFLAGS="--cfg loom" $(CARGO) test --profile checked --locked --target-dir target/loom \
		--package weir-pool --package weir-redo --package weir-txn --lib loom_

# Both need a nightly toolchain (`rustup component add rust-src miri --toolchain nightly`), and are not a part of `test`. What is
# expected to race, a page that is read while it is written, is named in crates/page/tsan.suppressions.
TSAN_CRATES ?= base logstore redo pool btree txn
tsan:
	@rustup component list --toolchain nightly --installed 2>/dev/null | grep -q rust-src || { \
		echo "make tsan needs a nightly toolchain with rust-src"; exit 1; }
	RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="suppressions=$(CURDIR)/crates/page/tsan.suppressions exitcode=66" \
		$(CARGO) +nightly test --locked --no-fail-fast -Zbuild-std --target x86_64-unknown-linux-gnu --target-dir target/tsan \
		$(TSAN_CRATES:%=--package weir-%) --lib --tests $(ARGS)

# Minutes for each test of many steps: give ARGS='-- NAME' while working on one.
MIRI_CRATES ?= base
miri:
	@rustup component list --toolchain nightly --installed 2>/dev/null | grep -q miri || { \
		echo "make miri needs a nightly toolchain with miri"; exit 1; }
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=4 \
		$(CARGO) +nightly miri test --locked --target-dir target/miri $(MIRI_CRATES:%=--package weir-%) --lib $(ARGS)

# Where others compile it; none is a part of `test`. The oldest compiler that Cargo.toml names:
OLDEST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
.PHONY: oldest musl arm
oldest:
	@rustup toolchain list | grep -q '^$(OLDEST)' || rustup toolchain install $(OLDEST) --profile minimal
	$(CARGO) +$(OLDEST) check --workspace --all-targets --locked --target-dir target/oldest

# With musl, as on Alpine: musl-gcc compiles zstd's C. It does not link: rustc brings what musl needs for that.
musl:
	@rustup target add x86_64-unknown-linux-musl
	@command -v musl-gcc >/dev/null || apt-get install -q -y --no-install-recommends musl-tools
	CC_x86_64_unknown_linux_musl=musl-gcc $(CARGO) test --profile checked --locked --no-fail-fast --target x86_64-unknown-linux-musl \
		--target-dir target/musl --package weir-base --package weir-device --package weir-pool --package weirdb $(ARGS)

# For 64-bit ARM, under emulation: what runs itself again in another process cannot there, and there is no io_uring.
ARM_CRATES ?= base device page crypt redo logstore pool space btree txn recovery
arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
arm: export PROPTEST_CASES := 16
arm:
	@rustup target add aarch64-unknown-linux-gnu
	@command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null || \
		apt-get install -q -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
	$(CARGO) test --profile checked --locked --no-fail-fast --target aarch64-unknown-linux-gnu --target-dir target/arm --lib --tests \
		$(ARM_CRATES:%=--package weir-%) -- --skip the_environment_forbids_rings
	$(CARGO) test --profile checked --locked --target aarch64-unknown-linux-gnu --target-dir target/arm --package weirdb --test examples

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items

# The pages below docs as a book in target/book. Not a part of `test`: tidy checks links and contents.
book:
	@command -v mdbook >/dev/null || { echo "no mdbook here: cargo install mdbook"; exit 1; }
	mdbook build docs

# TPC-C through SQL, on a MariaDB of its own: not a part of `test`, since its client is many crates.
mysql: tools
	@command -v mariadbd >/dev/null || { \
		apt-get update -q && apt-get install -q -y --no-install-recommends mariadb-server; }
	$(CARGO) clippy --locked --package weir-bench --package weir-cli --features mysql --all-targets -- -D warnings
	$(CARGO) test --locked --package weir-bench --features mysql mysql

# ---- install --------------------------------------------------------------------------------------

# INSTALL_PROFILE=shipped builds for longer what is 3 to 4 % faster; dev is quick to build, and slow.
PREFIX ?= /usr/local
INSTALL_PROFILE ?= release
INSTALL_FROM = target/$(if $(filter dev,$(INSTALL_PROFILE)),debug,$(INSTALL_PROFILE))
VERSION := $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
install: tools
	@$(CARGO) build --profile $(INSTALL_PROFILE) --locked --quiet --package weir-capi --package weir-cli --target-dir target
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" BINDIR="$(BINDIR)" \
		MANDIR="$(MANDIR)" DOCDIR="$(DOCDIR)" crates/capi/install/install.sh $(INSTALL_FROM) $(VERSION)
	@echo "installed below $(DESTDIR)$(PREFIX)"

uninstall:
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" BINDIR="$(BINDIR)" \
		MANDIR="$(MANDIR)" DOCDIR="$(DOCDIR)" crates/capi/install/install.sh $(INSTALL_FROM) $(VERSION) --remove

# ---- figures --------------------------------------------------------------------------------------

# FIGURES=docs/benchmarks/NAME.json: the figures are added to that set (cargo run -p xtask -- benchmarks shows them).
FIGURES ?=
COMMIT = $(shell git rev-parse --short HEAD)
FIGURE = $(if $(FIGURES),--figure $(FIGURES) --commit $(COMMIT))

bench: target/release/weir
	target/release/weir bench update --dir ./weir-data/bench --fresh $(FIGURE) $(ARGS)
	target/release/weir bench update --dir ./weir-data/bench --durability lazy --threads 1 $(FIGURE) $(ARGS)
	target/release/weir bench read --dir ./weir-data/bench --threads 2 $(FIGURE) $(ARGS)
	target/release/weir bench scan --dir ./weir-data/bench --threads 2 $(FIGURE) $(ARGS)
	target/release/weir bench tpcc --dir ./weir-data/bench-tpcc --threads 2 $(FIGURE) $(ARGS)

# RocksDB, SQLite and WiredTiger come from the distribution, so that they need no compiling; a
# distribution without WiredTiger gets the others. Not --locked: the lock file of this other workspace
# would have to follow every change of Weir's own dependencies.
RIVALS_FEATURES = $(if $(wildcard /usr/include/wiredtiger.h),--features wiredtiger)

rivals-tools:
	@[ -e /usr/include/rocksdb/c.h ] && [ -e /usr/include/sqlite3.h ] && [ -e /usr/include/wiredtiger.h ] || { \
		apt-get update -q && apt-get install -q -y --no-install-recommends \
			librocksdb-dev libsqlite3-dev pkg-config gcc libc6-dev && { \
		apt-get install -q -y --no-install-recommends libwiredtiger-dev || true; }; }

# The report is rivals-data/report.html. Stopped, it goes on with the next call; ARGS=--fresh begins anew.
rivals: tools rivals-tools
	cd rivals && $(CARGO) build --release $(RIVALS_FEATURES)
	"$${CARGO_TARGET_DIR:-rivals/target}/release/rivals" --dir rivals-data \
		--html rivals-data/report.html --json rivals-data/report.json --force \
		$(if $(FIGURES),--figures $(FIGURES) --commit $(COMMIT)) $(ARGS)

# Every workload on every engine for a moment. Not a part of `test`: LMDB, SQLite's binding, redb and
# fjall are minutes of compiling for something that the engine does not depend on.
rivals-test: tools rivals-tools
	cd rivals && $(CARGO) fmt --check
	cd rivals && $(CARGO) clippy --release --all-targets $(RIVALS_FEATURES) -- -D warnings
	cd rivals && $(CARGO) test --release $(RIVALS_FEATURES)

# What the live page and the metrics cost when they are asked for once a second; fails above 1 %.
lab-cost: target/release/weir
	target/release/weir lab cost --dir ./weir-data/lab $(ARGS)

# ---- fuzz -----------------------------------------------------------------------------------------

# The wheel for Python, its types checked, and its tests: needs Python 3.11 or later, and PyPI for maturin, mypy, pytest and hypothesis.
.PHONY: python python-wheel python-bench
PYTHON ?= python3
python: python-wheel
	cd python && ../target/python/bin/python -m mypy --config-file mypy.ini --cache-dir ../target/python/mypy
	target/python/bin/python -m pytest -q -p no:cacheprovider python/tests

python-wheel:
	@test -x target/python/bin/python || $(PYTHON) -m venv target/python
	@target/python/bin/pip install --quiet maturin mypy pytest hypothesis
	@cd python && CARGO_TARGET_DIR=$(CURDIR)/target/python/cargo $(CURDIR)/target/python/bin/maturin build --quiet --release --locked \
		--interpreter $(CURDIR)/target/python/bin/python --out $(CURDIR)/target/python/wheels
	@target/python/bin/pip install --quiet --force-reinstall target/python/wheels/weirdb-*.whl

# Beside lmdb and rocksdict from PyPI. ARGS=--rows N.
python-bench: python-wheel
	@target/python/bin/pip install --quiet lmdb rocksdict
	target/python/bin/python python/bench.py $(ARGS)

# By cargo-fuzz where it is installed; without it the same targets, built with the same coverage flags.
fuzz:
	@rustup toolchain list 2>/dev/null | grep -q nightly || { \
		echo "make fuzz needs a nightly toolchain: rustup toolchain install nightly"; exit 1; }
	@for target in $(FUZZ_TARGETS); do \
		echo "fuzzing $$target for $(SECONDS) s"; \
		fuzz/run "$$target" "$(SECONDS)"; \
	done
	@echo "make fuzz: nothing found"

clean:
	$(CARGO) clean
	rm -rf rivals/target fuzz/target rivals-data weir-data fuzz/corpus fuzz/artifacts
