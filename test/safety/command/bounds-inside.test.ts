import { beforeAll, describe, expect, test } from '@jest/globals'
import { inspectAwk } from '../../../safety/command/awk.ts'
import { inspectJq } from '../../../safety/command/jq.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { inspectSed } from '../../../safety/command/sed.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/** Bounds on what programs make of little, and on what servers do for them. */

beforeAll(loadSql)
const judged = (text: string) => judgeCommand(text, { knownHosts: new Set(['ch-1']), knownNames: new Set() })

describe('awk', () => {
  test.each([
    '{for (i = 1; i <= NF; i++) print $i}',
    '{for (i=NF; i>0; i--) printf "%s ", $i; print ""}',
    '{a[n++] = $0} END {for (i = n - 1; i >= 0; i--) print a[i]}',
    '{for (i = 2; i <= NF; i += 2) if ($i ~ /x/) {s += $i; print i}} END {print s}',
    '{for (i=1;i<=length($0);i++) c[substr($0,i,1)]++} END {for (k in c) print k, c[k]}',
    '{for(i=1;i<=3;i++) for(j=1;j<=3;j++) print i, j}',
    'BEGIN {for (i = 0; i < 10 && i < 5; i++) print i}',
    '{printf "%-20s %5.1f%%\\n", $1, $2}',
    'BEGIN {fmt = "%-10s %s\\n"} {printf fmt, $1, $2}',
    '{print $5 "%"}',
    '{printf("%s%%\\n", $5)}',
    '{printf "%s" "\\n", $1}',
    '{s = s " " $1} END {print s}',
    '{key = $1 "," $2; n[key]++; line[key] = line[key] " " NR} END {for (k in n) print k, n[k], line[k]}',
    '{max = ($1 > max) ? $1 : max; sum = sum + $1 * max} END {print max, sum}',
    '{for (i=2; i<=NF; i++) {gsub(/,/, "", $i); s += $i}} END {print s}',
    '{$3 = $3 "%"; NF--; print}',
    '{for (i=1; i<=NF; i++) $i = toupper($i); print}',
    '{printf $1 " "}',
    '{for (k in a) a[k] = 0}',
  ])('computes within a limit: %s', (program) => expect(inspectAwk(program)).toBeNull())

  // Before, each of these was taken, but the last three.
  test.each([
    'BEGIN {for (i=0; i>=0; i++) n++}',
    'BEGIN {for (i=0; i<9; i--) n++}',
    'BEGIN {for (i=9; i>0; i++) n++}',
    'BEGIN {for (i=0; i<9; j++) n++}',
    'BEGIN {for (i=0; i<9; i+=0) n++}',
    'BEGIN {for (i=0; i!=9; i+=2) n++}',
    'BEGIN {for (i=0; i<9; i++) i = 0}',
    'BEGIN {for (i=0; i<9; i++) {if (i > 3) i--}}',
    'BEGIN {for (i=0; i<9; i++) for (i=0; i<5; i++) n++}',
    '{n=NF; for (i=0; i<n; i++) n++}',
    '{for (i=1; i<=NF; i++) $(NF++) = 1}',
    'BEGIN {for (i=0; i<999999; i++) n++}',
    'BEGIN {for (i=0; i<9999; i++) for (j=0; j<9999; j++) n++}',
    'BEGIN {s="x"; for (i=0; i<40; i++) s = s s}',
    'BEGIN {s="x"; for (i=0; i<40; i++) gsub(/./, "&&", s)}',
    'BEGIN {printf "%2000000000d", 1}',
    'BEGIN {printf "%.2000000000d", 1}',
    'BEGIN {printf "%*d", 2000000000, 1}',
    'BEGIN {printf "%" 2000000000 "d", 1}',
    'BEGIN {f = "%"; x = sprintf(f 2000000000 "d", 1)}',
    'BEGIN {for (;;) n++}',
    'BEGIN {while (1) n++}',
    'BEGIN {for (i=0; i<1e12; i++) n++}',
    // Lists of what is endless took these.
    '{x = x "" x}',
    '{x = (x x)}',
    '{y = x; x = x y "a"}',
    '{x = sprintf("%s%s", x, x)}',
    '{a[1] = a[1] a[1] "x"}',
    '{for (k in a) a[k k] = 1; a[$1] = 1}',
    'BEGIN {x = "aa"; for (i=0; i<40; i++) gsub(/a/, "aa", x)}',
    'BEGIN {for (i=0; i<99; i++) for (j=0; j<99; j++) for (k=0; k<99; k++) for (l=0; l<99; l++) n++}',
    'BEGIN {NF = 100000000}',
    '{$100000000 = 1}',
    '{$n = 1}',
    'BEGIN {printf "\\45999999999d", 1}',
    'BEGIN {printf "\\x25999999999d", 1}',
    'BEGIN {printf sprintf("%c%d%s", 37, 99999999, "d"), 1}',
    'BEGIN {OFMT = "%." 99999999 "f"; print 1.5}',
    'BEGIN {other(1)}',
    '{for (i=1; i<=NF; i++) $(i+1) = 1}',
    `{${'a='.repeat(7_000)}1}`,
    `{${'for (k in a) '.repeat(1_000)}x}`,
  ])('has no limit: %s', (program) => expect(inspectAwk(program)).not.toBeNull())
})

describe('jq', () => {
  test.each([
    '.',
    '..|.name?',
    'recurse',
    'recurse(.children[])',
    'recurse(.[]?)',
    '[range(10)]',
    '.[100]',
    '.a * 100',
    '(.used / .size * 100 | round)',
    'gsub("\\\\s+"; " ")',
    '.items | map(.bytes * 1024) | add',
    '[limit(5; .[])]',
    'reduce .[] as $x (0; . + $x.n)',
    'map(. * 100 / 1024)',
    '(.a + .b), (.c, .d)',
  ])('computes within a limit: %s', (program) => expect(inspectJq(program)).toBeNull())

  // Before, each of these was taken, but the last one.
  test.each([
    'recurse(.+1)',
    '[recurse(.*2; . < 1e300)]',
    'recurse(., .)',
    '[range(99999) | range(99999)]',
    '.[536870910] = 1',
    'setpath([536870910]; 1)',
    '[[1,2,3],[1,2,3]] | combinations',
    '[0,1] | combinations(40)',
    '"x" * 999999 * 999999',
    '999999 * 999999 * "x"',
    '.[pow(10; 9)] = 1',
    '.[exp10(9)] = 1',
    'gsub(""; "x")',
    'gsub("^"; "x")',
    'range(1e12)',
    'reduce range(100) as $i ("a"; . + .)',
    'reduce .[] as $x ([0]; [., .])',
    `"a"${' | . + .'.repeat(30)}`,
    `1${' | (1, 2)'.repeat(30)}`,
    '900000000 as $n | "a" * $n',
  ])('has no limit: %s', (program) => expect(inspectJq(program)).not.toBeNull())
})

describe('sed', () => {
  test.each(['1!G;h;$!d', 'H;$!d;x;s/\\n/,/g', 's/[0-9]*/<&>/', 's/\\(a\\)\\(b\\)/\\2\\1/', 'G'])(
    'prints as much as it reads: %s',
    (script) => expect(inspectSed(script)).toBeNull(),
  )

  test.each(['H;G;h', 'G;h;G;h', '$!{G;h;G;h}', Array.from({ length: 9 }, () => 's/./&&&&&&&&&&/g').join(';')])(
    'doubles with each line: %s',
    (script) => expect(inspectSed(script)).not.toBeNull(),
  )
})

describe('servers and formats', () => {
  test.each([
    "clickhouse-client -q 'select count() from system.parts'",
    "clickhouse-client -q 'select event, value from system.events order by value desc limit 10'",
    "clickhouse-client --max_execution_time 30 -q 'select count() from shop.orders'",
    "clickhouse-client -h ch-1 --max_execution_time=30 -q 'select count() from a join b on a.id = b.id'",
    "clickhouse client --max_execution_time 10 -q 'select max(at) from shop.orders'",
    'mongosh --quiet --eval \'db.orders.find({"state": "open"}).limit(5)\'',
    'mongosh --eval \'db.orders.find({"a": 1}).explain("queryPlanner")\'',
    "printf '%-20s %s\\n' a b",
    "stat -c '%n %s' /var/log/syslog",
  ])('run without approval: %s', (text) => expect(judged(text)).toMatchObject({ verdict: 'run' }))

  // Before, each of these ran: "every command only reads".
  test.each([
    "clickhouse-client -q 'select count() from a, b, c'",
    "clickhouse-client -q 'select count() from shop.orders'",
    "clickhouse-client -q 'SELECT count() FROM (SELECT * FROM a)'",
    "clickhouse-client -q 'select count() from system.parts, system.columns'",
    "clickhouse-client -q 'select count() from system.query_log a join system.query_log b on a.type = b.type'",
    "clickhouse-client --max_execution_time 0 -q 'select count() from a, b, c'",
    "clickhouse-client --max_execution_time 86400 -q 'select count() from a, b, c'",
    "clickhouse client -q 'select count() from a, b'",
    "mongosh --eval 'db.big.find({}).limit(0).toArray()'",
    "mongosh --eval 'db.big.find({}).limit(00)'",
    'mongosh --eval \'db.big.find({"a": 1}).explain("executionStats")\'',
    "printf '%2000000000d' 1",
    "printf '%*d' 2000000000 1",
    "stat -c '%2000000000n' /etc/hosts",
    "find /var/log -maxdepth 1 -printf '%2000000000p'",
    "git log --pretty='%w(1000000000,1,1)%s'",
    "git log --pretty='%<|(1000000000)%s'",
    "awk -v OFMT=%.999999999f 'BEGIN {print 1.5}'",
    "awk 'BEGIN {printf f, 1}' f=%999999999d",
  ])('ask: %s', (text) => expect(judged(text)).toMatchObject({ verdict: 'ask' }))
})
