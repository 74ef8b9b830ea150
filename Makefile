# Every target works on a fresh machine with Python ≥3.11, g++ and make.
PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8000
PY     := $(VENV)/bin/python

.PHONY: demo up test lint types format doctor install clean

demo: install          ## start everything, import the demo profile, run the demo campaign; prints one link
	$(PY) manage.py up --demo --port $(PORT)

up: install            ## start everything; prints one link
	$(PY) manage.py up --port $(PORT)

test: install lint types   ## what CI runs
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) -m pytest -n 3

lint: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: install
	$(VENV)/bin/mypy --num-workers 2

format: install
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

doctor: install        ## what is there, what is missing, what to do
	$(PY) manage.py doctor

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); the first time takes a few minutes, mostly for torch."
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	@$(PY) -m compileall -qq -j 0 -x '/tests/|/plotly/' $(VENV)/lib || true  # on all cores, where pip takes one
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache *.egg-info
