# SPDX-License-Identifier: Apache-2.0
# Thin: every target installs what it lacks (tools/setup.sh) and calls one script. Everything is written to build/.
.DEFAULT_GOAL := build
.PHONY: build dashboard demo test bench check format schema clean help

build: ## build everything into build/ (build/bin/gpufl, build/lib/libgpufl.so)
	@tools/setup.sh build test
	@tools/build.sh all

dashboard: ## build the server with the dashboard, or say why that is not possible (needs Node.js 20.19 or newer and npm)
	@tools/setup.sh build
	@tools/build.sh dashboard

demo: ## a full report, then a server with that session and this host's live metrics (DEMO="--stay": also without a terminal)
	@tools/setup.sh build
	@tools/build.sh program
	@build/bin/gpufl demo $(DEMO)

test: ## everything that CI runs (FUZZ_SECONDS=60 per fuzzer)
	@tools/setup.sh build test check web packages
	@tools/run_tests.sh

check: ## layers, tidy, generated files, formatting, shellcheck, cppcheck, clang-tidy
	@tools/setup.sh check
	@tools/run_tests.sh check lint

bench: ## run the benchmarks, each budget as a ratio
	@tools/setup.sh build test
	@tools/build.sh all
	@tools/run_bench.sh

format: ## apply .clang-format
	@tools/setup.sh format
	@tools/format.sh

schema: ## regenerate what is derived from schema/records.json
	@/usr/bin/python3 tools/gen_schema.py

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | sed 's/|/\t/' | expand -t 16
