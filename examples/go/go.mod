module tutti.org/examples

go 1.19

require tutti.org/tutti v0.1.0

replace tutti.org/tutti => ../../bindings/go
