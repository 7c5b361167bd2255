package record

// DefaultJitter is the share by which the period varies if nothing is said.
const DefaultJitter = 0.1

// strategies are those the options ask for.
func (r *recorder) strategies() []strategy {
	return nil
}
