# make help lists the targets.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 10m
PREFIX     ?= /usr/local

.DEFAULT_GOAL = build
.PHONY: build test check demo testdata bench bench-data fuzz install uninstall clean help

## build: the program, ./perfcorrect, without C libraries
build:
	CGO_ENABLED=0 go build -trimpath -o perfcorrect .

## test: all checks and tests; installs the Debian packages they need
test: check
	scripts/need perf:linux-perf gcc:gcc g++:g++ objdump:binutils zstd:zstd /usr/include/string.h:libc6-dev
	go test -timeout 20m ./...

# gofmt, go vet, and staticcheck where it can be had.
check:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	@if go run $(STATICCHECK) -version >/dev/null 2>&1; \
	then echo go run $(STATICCHECK) ./...; go run $(STATICCHECK) ./...; \
	else echo "staticcheck cannot be fetched or built here: not run"; fi

## demo: record two programs whose profiles lie, and correct them
demo: build
	scripts/demo

## testdata: make the recordings of testdata again (as root)
testdata:
	scripts/testdata

## bench-data: record the inputs of bench, 5 million samples together
bench-data:
	scripts/bench-data

## bench: time and memory beside perf and FlameGraph; writes docs/performance.md
bench: build
	scripts/bench

## fuzz: run every fuzz target for FUZZTIME (10m)
fuzz:
	scripts/fuzz $(FUZZTIME)

## install: the program, its man page and shell completion, under PREFIX
install: build
	install -D perfcorrect $(DESTDIR)$(PREFIX)/bin/perfcorrect
	install -D -m 644 man/perfcorrect.1 $(DESTDIR)$(PREFIX)/share/man/man1/perfcorrect.1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	./perfcorrect completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/perfcorrect
	./perfcorrect completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_perfcorrect
	./perfcorrect completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/perfcorrect.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/perfcorrect \
		$(DESTDIR)$(PREFIX)/share/man/man1/perfcorrect.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/perfcorrect \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_perfcorrect \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/perfcorrect.fish

## clean: remove what the other targets made
clean:
	rm -rf perfcorrect build

## help: this list
help:
	@sed -n 's/^## //p' Makefile
