# make help lists the targets.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 10m
PREFIX     ?= /usr/local

.DEFAULT_GOAL = build
.PHONY: build test check demo testdata accuracy accuracy-quick accuracy-live bench bench-data unwinding fuzz install uninstall clean help

## build: the program, ./perfcorrect, without C libraries
build:
	CGO_ENABLED=0 go build -trimpath -o perfcorrect .

## test: all checks and tests; installs the Debian packages they need
test: check
	scripts/need $(lab_packages) perf:linux-perf objdump:binutils llvm-symbolizer:llvm dwz:dwz xz:xz-utils \
		perl:perl sqlite3:sqlite3 jq:jq
	go test -timeout 20m ./...
	$(MAKE) -C testdata/vpmu test
	$(MAKE) accuracy-quick

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

# The programs the accuracy lab runs, and what it runs and compiles them with.
lab_packages = qemu-x86_64:qemu-user gcc:gcc g++:g++ zstd:zstd brotli:brotli php:php-cli tclsh:tcl \
	/usr/lib/x86_64-linux-gnu/guile/3.0/bin/guile:guile-3.0 bc:bc m4:m4 xmllint:libxml2-utils \
	convert-im6.q16:imagemagick gs:ghostscript rg:ripgrep nasm:nasm ffmpeg:ffmpeg busybox:busybox \
	/usr/include/string.h:libc6-dev

## accuracy: all methods on all programs of the lab; writes docs/accuracy.md
accuracy:
	scripts/need $(lab_packages)
	go run ./lab

## accuracy-quick: a slice of it, not written anywhere
accuracy-quick:
	scripts/need qemu-x86_64:qemu-user gcc:gcc bc:bc m4:m4 /usr/include/string.h:libc6-dev
	go run ./lab -quick

## accuracy-live: programs run natively on this machine; writes docs/accuracy-live.md
accuracy-live:
	scripts/need qemu-x86_64:qemu-user perf:linux-perf gcc:gcc g++:g++ dpkg-source:dpkg-dev make:make tclsh:tcl \
		lua5.4:lua5.4 sqlite3:sqlite3 zstd:zstd bzip2:bzip2 bc:bc m4:m4 /usr/include/string.h:libc6-dev
	go run ./lab -live

## bench-data: record the inputs of bench, 5 million samples together
bench-data:
	scripts/bench-data

## bench: time and memory beside perf and FlameGraph; writes docs/performance.md
bench: build
	scripts/bench

## unwinding: compare stacks with perf script's and readelf's rules, on the programs of this system
unwinding:
	scripts/need perf:linux-perf gcc:gcc g++:g++ readelf:binutils
	PERFCORRECT_LONG=1 go test -timeout 60m -v -run 'Everywhere|EverythingParses|ProgramsEqualPerf|UnwoundEqualsPerf|Mend' ./unwind ./session
	scripts/unwinding-speed

## record-bench: what recording costs beside perf record; writes docs/recording.md
record-bench:
	scripts/record-bench

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
