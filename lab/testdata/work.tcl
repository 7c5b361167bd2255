proc fib n { if {$n < 2} { return $n }; expr {[fib [expr {$n-1}]] + [fib [expr {$n-2}]]} }
puts [fib 20]
expr {srand(42)}
set l {}
for {set i 0} {$i < 20000} {incr i} { lappend l [expr {int(rand()*100000)}] }
set l [lsort -integer $l]
puts [lindex $l 100]
array set a {}
foreach x $l { incr a([expr {$x % 997}]) }
puts [array size a]
set s ""
for {set i 0} {$i < 6000} {incr i} { append s [string toupper [string range "the quick brown fox $i" 3 12]] " " }
puts [regexp -all {[A-Z]{3}} $s]
set d [dict create]
foreach w [split $s] { dict incr d $w }
puts [dict size $d]
proc sieve n { set p [lrepeat [expr {$n+1}] 1]; for {set i 2} {$i*$i <= $n} {incr i} { if {[lindex $p $i]} { for {set j [expr {$i*$i}]} {$j <= $n} {incr j $i} { lset p $j 0 } } }; set c 0; for {set i 2} {$i <= $n} {incr i} { incr c [lindex $p $i] }; return $c }
puts [sieve 40000]
