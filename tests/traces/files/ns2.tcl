# two nodes; the first turns before it arrives
set god_ [God instance]
$node_(0) set X_ 10.0
$node_(0) set Y_ 0.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 0.0
$node_(1) set Y_ 50.0
$ns_ at 10.0 "$node_(0) setdest 110.0 0.0 5.0"
$ns_ at 20.0 "$node_(0) setdest 60.0 30.0 3.0"
$ns_ at 5.0 "$node_(1) setdest 0.0 90.0 0.0"
$ns_ at 8.0 "$node_(1) set X_ 25.0"
$ns_ at 9.0 "$node_(1) setdest 25.0 fifty 1.0"
