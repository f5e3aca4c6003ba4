import { expect, test } from '@jest/globals'
import { inspectAwk } from '../../../safety/command/awk.ts'
import { inspectJq } from '../../../safety/command/jq.ts'
import { inspectSed } from '../../../safety/command/sed.ts'

test.each([
  '{print $1}',
  '$3 > 1000 {print $1, $3}',
  '/a|b/ {n++} END {print n}',
  '{print (a > b)}',
  '{print a/b "x > y | z"}',
  'BEGIN{FS=":"} {printf "%s\\n", $1}',
  '{ print "system(x)" } # system("x")',
])('awk that only computes and prints: %s', (program) => expect(inspectAwk(program)).toBeNull())

test.each([
  'BEGIN{system("id")}',
  '{print > "/tmp/x"}',
  '{print >> "/tmp/x"}',
  '{print | "sh"}',
  '{"id" | getline x}',
  '{getline x < "/etc/shadow"}',
  'if (1) /"/; system("id"); /"/',
  '/[/]/; system("id"); #]/',
  '@load "x"',
  '{print ENVIRON["X"]}',
  'BEGIN{ARGV[1]="/etc/shadow"}',
  '{print "x',
])('awk that does more asks: %s', (program) => expect(inspectAwk(program)).not.toBeNull())

test.each(['1,20p', '/a/,/b/p', '$d', 's/a/b/gp', 's|/etc|/x|', '$=', '1!G;h;$!d', '/x/{p;q}', 'y/abc/xyz/', '\\,x,p'])(
  'sed that only prints: %s',
  (script) => expect(inspectSed(script)).toBeNull(),
)

test.each([
  'w /tmp/x',
  '1w/tmp/x',
  's/a/b/w /tmp/x',
  's/a/b/e',
  'e id',
  '1e',
  'r /etc/shadow',
  'R /etc/shadow',
  '$!W x',
  's/a/b',
  's/[/]/x/;s/]/w f/',
  'p\nw f',
])('sed that does more asks: %s', (script) => expect(inspectSed(script)).not.toBeNull())

test('jq reads its input and nothing else', () => {
  for (const program of ['.', '.items[] | .name', '.env', 'select(.a == "b") | {a, b: .c}'])
    expect(inspectJq(program)).toBeNull()
  for (const program of ['env', '$ENV.X', '"\\(env.X)"', 'include "x"; .', 'import "x" as x; .', 'input_filename']) {
    expect(inspectJq(program)).not.toBeNull()
  }
})
