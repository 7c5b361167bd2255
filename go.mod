module github.com/perfcorrect/perfcorrect

go 1.26.0
