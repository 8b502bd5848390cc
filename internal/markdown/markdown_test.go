package markdown

import "testing"

func TestIsHarmlessMath(t *testing.T) {
	for math, want := range map[string]bool{
		`$x$`: true, `$x_i^2$`: true, `$$\sum_{i=1}^{n} i$$`: true, `\(a+b\)`: true, `\[\vec{v} \cdot w\]`: true, `$\{a, b\}$`: true,
		`$x^2^3$`: false, `$x_$`: false, `$^$`: false, `${$`: false, `$}$`: false, `$a}{b$`: false, `$\frac{a}$`: false, `$\def\x{}$`: false, `$\csname x$`: false,
		`$\write18{ls}$`: false, `$x^^M$`: false, `$a%b$`: false, `$a#b$`: false, `$a&b$`: false, `$é$`: false, `$\text{a$b}$`: false, `$\$`: false, `$ $`: false,
	} {
		if got := isHarmlessMath(math); got != want {
			t.Errorf("isHarmlessMath(%q) = %t", math, got)
		}
	}
}
