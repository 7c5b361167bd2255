<?php
mt_srand(7);
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
class Node { public $k; public $l = null; public $r = null; function __construct($k) { $this->k = $k; } }
class Tree {
  private $root = null; public $n = 0;
  function put($k) { $p = &$this->root; while ($p !== null) { if ($k == $p->k) return; if ($k < $p->k) $p = &$p->l; else $p = &$p->r; } $p = new Node($k); $this->n++; }
  function depth($t = false) { if ($t === false) $t = $this->root; return $t === null ? 0 : 1 + max($this->depth($t->l), $this->depth($t->r)); }
}
echo fib(21), "\n";
$t = new Tree; for ($i = 0; $i < 12000; $i++) $t->put(mt_rand(0, 100000)); echo $t->n, " ", $t->depth(), "\n";
$words = []; for ($i = 0; $i < 30000; $i++) { $w = substr(md5((string)($i * $i)), 0, 3); $words[$w] = ($words[$w] ?? 0) + 1; }
arsort($words); ksort($words); echo count($words), "\n";
$s = ''; for ($i = 0; $i < 8000; $i++) $s .= preg_replace('/[aeiou]+/', '-', str_repeat('lorem ipsum dolor ', 2) . $i); echo strlen($s), "\n";
$m = []; for ($i = 0; $i < 40; $i++) for ($j = 0; $j < 40; $j++) { $x = 0; for ($k = 0; $k < 40; $k++) $x += $i * $k % 7 + $j; $m[$i][$j] = $x; } echo $m[3][4], "\n";
usort($m, fn($a, $b) => $a[5] <=> $b[5]); echo json_encode($m[0]) === '' ? 1 : 0, strlen(serialize($m)), "\n";
