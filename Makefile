# SPDX-License-Identifier: Apache-2.0
# Thin: every target installs what it lacks (tools/setup.sh) and calls one script. Everything is written to build/.
.DEFAULT_GOAL := build
.PHONY: build dashboard demo test bench check docs screenshots format schema deb dist dist-all clean help

build: ## build gpufl into build/ (build/bin/gpufl, build/lib/libgpufl.so, build/python)
	@tools/setup.sh build
	@tools/build.sh program

dashboard: ## make web/dist from web/ again, and build the server with it (needs npm); commit web/dist
	@tools/setup.sh build npm
	@tools/build_dashboard.sh
	@tools/build.sh program

demo: ## a full report, then a server with that session and this host's live metrics (DEMO="--stay": also without a terminal)
	@tools/setup.sh build
	@tools/build.sh program
	@build/bin/gpufl demo $(DEMO)

test: ## everything that CI runs (FUZZ_SECONDS=30 per fuzzer; SECTIONS="check gcc": those alone)
	@tools/setup.sh build test check docs web npm packages deb arm64 portable
	@tools/run_tests.sh $(SECTIONS)

check: ## layers, tidy, generated files, formatting, shellcheck, cppcheck, clang-tidy
	@tools/setup.sh check docs
	@tools/run_tests.sh check lint

bench: ## run the benchmarks, each budget as a ratio
	@tools/setup.sh build test
	@tools/build.sh all
	@tools/run_bench.sh

docs: ## the documentation as a book: build/book/index.html
	@tools/setup.sh docs
	@tools/build_book.py

screenshots: ## make the pictures of docs/dashboard.md again
	@tools/setup.sh build web npm
	@tools/build.sh program
	@node tools/screenshots.mjs

format: ## apply .clang-format
	@tools/setup.sh format
	@tools/format.sh

schema: ## regenerate what is derived from schema/ and the table of options
	@/usr/bin/python3 tools/gen_schema.py
	@/usr/bin/python3 tools/gen_options.py
	@/usr/bin/python3 tools/gen_watched_calls.py
	@/usr/bin/python3 tools/gen_kernel_kinds.py

deb: ## build the Debian packages into build/deb/packages
	@tools/setup.sh build deb
	@tools/build_deb.sh

dist: ## the source of the latest commit as build/gpufl-VERSION.tar.gz
	@tools/build_dist.sh

dist-all: ## everything that a release publishes, into build/dist (docs/release.md)
	@tools/setup.sh build deb portable
	@tools/dist_all.sh

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | sed 's/|/\t/' | expand -t 16
