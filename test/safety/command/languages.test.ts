import { describe, expect, test } from '@jest/globals'
import { hasOpenBracket, inspectAwk, inspectSed } from '../../../safety/command/awk.ts'
import type { Grammar, ValueKind } from '../../../safety/command/grammar.ts'
import { inspectJq } from '../../../safety/command/languages.ts'
import type { OptionMatch, Reading } from '../../../safety/command/options.ts'
import type { Word } from '../../../safety/command/parse.ts'
import { addressOf, hostOf, isKnownHost } from '../../../safety/command/remote-exec-wrappers.ts'
import { valueFindings } from '../../../safety/command/values.ts'

describe('languages', () => {
  describe('languages', () => {
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

    test.each([
      '1,20p',
      '/a/,/b/p',
      '$d',
      's/a/b/gp',
      's|/etc|/x|',
      '$=',
      '1!G;h;$!d',
      '/x/{p;q}',
      'y/abc/xyz/',
      '\\,x,p',
    ])('sed that only prints: %s', (script) => expect(inspectSed(script)).toBeNull())

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

    test('jq sees its input and nothing else', () => {
      for (const program of ['.', '.items[] | .name', '.env', 'select(.a == "b") | {a, b: .c}'])
        expect(inspectJq(program)).toBeNull()
      for (const program of [
        'env',
        '$ENV.X',
        '"\\(env.X)"',
        'include "x"; .',
        'import "x" as x; .',
        'input_filename',
      ]) {
        expect(inspectJq(program)).not.toBeNull()
      }
    })
  })

  describe('languages edges', () => {
    // Programs on both sides of each rule: null where they only look, else why they do more or cannot be read.

    describe('awk', () => {
      test.each([
        ['', null],
        ['{print}', null],
        ['  {print}', null],
        ['\t{print}\\\n', null],
        ['{print \\\n1}', null],
        ['\\x', null],
        ['# system("x")', null],
        ['# x\nsystem("x")', 'system() runs a program'],
        ['#', null],
        ['{print "a\\"b"}', null],
        ['{print "a\\\nb"}', null],
        ['{print "a\nb"}', 'a string does not end'],
        ['{print "a', 'a string does not end'],
        ['"', 'a string does not end'],
        ['"x" "y"', null],
        ['/a/', null],
        ['/a\\/b/', null],
        ['/a\nb/', 'a regular expression does not end'],
        ['/a', 'a regular expression does not end'],
        ['1/2', null],
        ['x/2', null],
        ['"x"/2', null],
        ['/a/ /b/', null],
        ['$1/2', null],
        ['x++/2', 'a slash that may divide or begin a regular expression'],
        ['x--/2', 'a slash that may divide or begin a regular expression'],
        ['(1)/2', 'a slash that may divide or begin a regular expression'],
        ['a[1]/2', null],
        ['a[1]/2/3', null],
        ['print/x/', null],
        ['printf/x/', null],
        ['return /x/', null],
        ['x in /x/', null],
        ['else/x/', null],
        ['exit/x/', null],
        ['case/x/', null],
        ['y/x/z/system(1)/', 'system() runs a program'],
        ['printx/x/', null],
        ['!/x/', null],
        ['{/x/}', null],
        [',/x/', null],
        ['/[/]/', 'a slash inside brackets'],
        ['/[^]]/', null],
        ['/[a]/', null],
        ['/\\[/', null],
        ['/[\\]/', 'a slash inside brackets'],
        ['system', 'system() runs a program'],
        ['systems', null],
        ['xsystem', null],
        ['_x1 = 2', null],
        ['getline', 'getline may read a file or a program'],
        ['close(x)', 'close() ends a pipe'],
        ['fflush()', 'fflush() may write'],
        ['ENVIRON', 'ENVIRON holds the environment'],
        ['PROCINFO', 'PROCINFO changes how input is read'],
        ['ARGV', 'ARGV changes which files are read'],
        ['ARGC', 'ARGC changes which files are read'],
        ['SYMTAB', 'SYMTAB holds all of these under other names'],
        ['FUNCTAB', 'FUNCTAB holds functions under other names'],
        ['constructor', null],
        ['@load', '@ loads code or calls what a variable names'],
        ['a|b', '| opens a pipe to a program'],
        ['a||b', null],
        ['a|&b', '|& opens a pipe to a program'],
        ['a&&b', null],
        ['a>>b', '>> writes a file'],
        ['print a>b', '> writes a file'],
        ['print (a>b)', null],
        ['print a[b>c]', null],
        ['print (a)>b', '> writes a file'],
        ['print a[1]>b', '> writes a file'],
        ['a>b', null],
        ['{print a} b>c', null],
        ['{print a; b>c}', null],
        ['print a\nb>c', '> writes a file'],
        ['{print a}{b>c}', null],
        ['printf "x">b', '> writes a file'],
        ['print a>=b', null],
        ['print a==b', null],
        ['print a<=b', null],
        ['print a!=b', null],
        ['print a<b', null],
        ['(print a)>b', null],
        ['(a;print b>c', '> writes a file'],
        ['print (a; print b>c', '> writes a file'],
        ['1.5e3', null],
        ['1.5e+3', null],
        ['.5', null],
        ['5.', null],
        ['1e', null],
        ['1e5x', null],
        ['.', null],
        ['1..2', null],
        ['5/2/1', null],
        ['.5/2/1', null],
        ['1.25/2/1', null],
        ['1e10/2/1', null],
        ['é', 'é is not awk'],
        ['"é"', null],
        ['{print é}', 'é is not awk'],
        ['`x`', null],
        ["'x'", null],
        ['a\rb', '\r is not awk'],
        ['a\u0001', '\u0001 is not awk'],
        ['{ if (x) /y/ }', 'a slash that may divide or begin a regular expression'],
        ['x=/y/', null],
        ['x~/y/', null],
        ['x+/y/', 'a slash that may divide or begin a regular expression'],
        ['x-/y/', 'a slash that may divide or begin a regular expression'],
        ['+/y/', 'a slash that may divide or begin a regular expression'],
        ['}/y/', null],
        ['{ print $1 > "x" }', '> writes a file'],
        ['{ x = y > z }', null],
        ['print a; }>b', null],
        ['{print a}\n$1>5', null],
        [']/2/', null],
        ['a]/[/', 'a regular expression does not end'],
        ['BEGIN{while(1);}', 'while may never end'],
        ['BEGIN{do n++; while(1)}', 'do may never end'],
        ['BEGIN{for(;;)n++}', 'for may never end'],
        ['BEGIN{for(i=0;i<1e12;i++)n++}', 'for may never end'],
        ['{for(i=1;i<=NF;i++)n+=$i} END{for(k in a)print k}', null],
      ])('%j: %j', (program, expected) => {
        expect(inspectAwk(program)).toBe(expected)
      })

      test.each([
        ['a', false],
        ['[', true],
        ['[a]', false],
        ['[a', true],
        ['[]]', false],
        ['[^]]', false],
        ['\\[', false],
        ['[\\]', true],
        ['[a][', true],
        ['[a][b]', false],
      ])('a bracket is left open in %s: %s', (expression, open) => {
        expect(hasOpenBracket(expression)).toBe(open)
      })
    })

    describe('sed', () => {
      test.each([
        ['', null],
        [' ', null],
        [';;', null],
        ['p', null],
        ['P', null],
        ['d', null],
        ['D', null],
        ['n', null],
        ['N', null],
        ['g', null],
        ['G', null],
        ['h', null],
        ['H', null],
        ['x', null],
        ['=', null],
        ['z', null],
        ['l', null],
        ['l 5', null],
        ['l5', null],
        ['l 5 ', null],
        ['l x', '" x" after a command'],
        ['q', null],
        ['q5', null],
        ['q 12', null],
        ['q5x', '"5x" after a command'],
        ['Q', null],
        ['Q1', null],
        ['{', null],
        ['{p}', null],
        ['{p;p}', null],
        ['p}', null],
        ['}', null],
        ['p ; p', null],
        ['p\np', null],
        ['p p', '" p" after a command'],
        ['p#x', null],
        ['p # x', null],
        ['p# w f\nw f', 'the command w is not one that only prints'],
        ['# x', null],
        ['#x\np', null],
        ['# x\nw f', 'the command w is not one that only prints'],
        ['px', '"x" after a command'],
        ['pw f', '"w f" after a command'],
        ['5p', null],
        ['5,6p', null],
        ['5,$p', null],
        ['$p', null],
        ['$!p', null],
        ['5 , 6 p', null],
        ['5,6 ! ! p', null],
        ['5~2p', null],
        ['5,+2p', null],
        ['5,~4p', null],
        ['5,x', 'an address that cannot be read'],
        ['5,', 'an address that cannot be read'],
        ['5', 'a command is missing'],
        ['/a/p', null],
        ['/a/Ip', null],
        ['/a/IMp', null],
        ['/a/Xp', 'the command X is not one that only prints'],
        ['/a\\/b/p', null],
        ['/a', 'a command is missing'],
        ['/a\n/p', 'the command \n is not one that only prints'],
        ['/[/]/p', 'the command ] is not one that only prints'],
        ['/[a]/p', null],
        ['/a/,/b/p', null],
        ['/a/,/b', 'an address that cannot be read'],
        ['/a/,5p', null],
        ['\\,a,p', null],
        ['\\,a', 'a command is missing'],
        ['\\\n', 'the command \\ is not one that only prints'],
        ['\\\\', 'the command \\ is not one that only prints'],
        ['\\xaxp', null],
        ['\\,[,],p', 'the command ] is not one that only prints'],
        [',5p', 'the command , is not one that only prints'],
        ['5,/a', 'an address that cannot be read'],
        ['5,w f', 'an address that cannot be read'],
        ['s/a/b/', null],
        ['s/a/b', 'an s command that cannot be read'],
        ['s/a', 'an s command that cannot be read'],
        ['s', 'an s command that cannot be read'],
        ['s/a/b/g', null],
        ['s/a/b/gI2p', null],
        ['s/a/b/w f', 's with w writes a file or runs a program'],
        ['s/a/b/gw f', 's with gw writes a file or runs a program'],
        ['s/a/b/e', 's with e writes a file or runs a program'],
        ['s/a/b/m', null],
        ['s/a/b/M', null],
        ['s/a/b/;p', null],
        ['s/a/b/ ; p', null],
        ['s/a/b/ x', '" x" after a command'],
        ['s/a/b/}', null],
        ['s/a/b/#x', null],
        ['s/a/b/\nw f', 'the command w is not one that only prints'],
        ['s,a,b,', null],
        ['sxaxbx', 'an s command that cannot be read'],
        ['s a b ', 'an s command that cannot be read'],
        ['s1a1b1', 'an s command that cannot be read'],
        ['s\\a\\b\\', 'an s command that cannot be read'],
        ['s_a_b_', 'an s command that cannot be read'],
        ['s|a|b|w f', 's with w writes a file or runs a program'],
        ['s/a\\/b/c/', null],
        ['s/a/b\\/c/', null],
        ['s/a/b\nc/', 'an s command that cannot be read'],
        ['s/a/[/w f', 's with w writes a file or runs a program'],
        ['s/[/]/x/', 'an s command that cannot be read'],
        ['s/a/[/', null],
        ['s/a/\\', 'an s command that cannot be read'],
        ['y/a/b/', null],
        ['y/a/b', 'a y command that cannot be read'],
        ['y/a', 'a y command that cannot be read'],
        ['y', 'a y command that cannot be read'],
        ['y/a/b/p', '"p" after a command'],
        ['y/a/b/ ; p', null],
        ['y/a/b/w f', '"w f" after a command'],
        ['w f', 'the command w is not one that only prints'],
        ['r f', 'the command r is not one that only prints'],
        ['e', 'the command e is not one that only prints'],
        ['a x', 'the command a is not one that only prints'],
        ['i x', 'the command i is not one that only prints'],
        ['c x', 'the command c is not one that only prints'],
        ['b', 'the command b is not one that only prints'],
        ['t', 'the command t is not one that only prints'],
        [':x', 'the command : is not one that only prints'],
        ['5!{p}', null],
        ['!p', null],
        ['! p', null],
        [' ! p', null],
        ['5 !p', null],
        ['5\t!\tp', null],
        ['5,6!w f', 'the command w is not one that only prints'],
        ['p;w f', 'the command w is not one that only prints'],
        ['{w f}', 'the command w is not one that only prints'],
        ['5{p;q}', null],
        ['1~2!d', null],
        ['+2p', 'the command + is not one that only prints'],
        ['~2p', 'the command ~ is not one that only prints'],
        ['5,+p', 'an address that cannot be read'],
        ['0~3p', null],
      ])('%j: %j', (script, expected) => {
        expect(inspectSed(script)).toBe(expected)
      })
    })
  })
})

describe('values edges', () => {
  const word = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })
  const pattern = (text: string): Word => ({ text, literal: false, quoting: 'bare', pattern: text })
  const unknown = (text: string): Word => ({ text, literal: false, quoting: 'bare', pattern: null })

  type Given = { kind: ValueKind; word: Word; repeats?: boolean }
  function found(values: Given[], name = 'cat', grammars: Partial<Grammar>[] = [{}], options: string[] = []): string[] {
    const reading: Reading = {
      values: values.map((value) => ({ repeats: true, ...value })),
      found: options.map((option): OptionMatch => ({ name: option, at: 1, clustered: false, valueAt: null })),
      operands: [],
      grammars: grammars as Grammar[],
      chosenAt: 0,
      problem: null,
    }
    return valueFindings(reading, { name, directories: [], knownHosts: new Set(['db1']), secrets: [] }).map(
      ({ code, reason }) => `${code}: ${reason}`,
    )
  }
  const one = (kind: ValueKind, text: string, name?: string) => found([{ kind, word: word(text) }], name)

  describe('a number', () => {
    test.each(['5', '-5', '+5', '05', '1.5', '1.25', '.5', '.55', '10%', '10MiB', '10k', '1.5h'])('is %s', (text) => {
      expect(one('number', text)).toEqual([])
    })
    test.each(['', 'x', '5x5', '5abcd', '1.', '1..5', 'x5', '5 ', '--5', '5_', '.', '1.x', 'x.5', '5.5.5'])(
      'is not %j',
      (text) => {
        expect(one('number', text)).toEqual([`ARGUMENT: ${text} is not a number`])
      },
    )
  })

  describe('a name', () => {
    test.each(['nginx', 'nginx.service', '_x', '@x', '7', 'deploy/web', 'a@b.c:d+e,f=g\\x2d-h', 'x/a.b@c:d+e-f'])(
      'is %s',
      (text) => {
        expect(one('name', text)).toEqual([])
      },
    )
    test.each(['', '-x', '/x', '.x', 'a b', 'a/b/c', 'a/', 'a/-/b', 'a..b', '../x', 'a/b c', 'a;b', 'a/b;c'])(
      'is not %j',
      (text) => {
        expect(one('name', text)).toEqual([`ARGUMENT: ${text} is not a plain name`])
      },
    )
  })

  describe('a file', () => {
    test.each(['-', '/var/log/syslog', 'x', '/dev/null'])('%s may be read', (text) => {
      expect(one('file', text)).toEqual([])
    })
    test.each([
      ['/etc/shadow', 'SENSITIVE_PATH: /etc/shadow is a path that holds secrets'],
      ['@/etc/shadow', 'SENSITIVE_PATH: @/etc/shadow is a path that holds secrets'],
      ['</etc/shadow', 'SENSITIVE_PATH: </etc/shadow is a path that holds secrets'],
      ['/dev/zero', 'UNBOUNDED: /dev/zero has no end'],
      ['/dev/sda', 'SENSITIVE_PATH: /dev/sda is a path that holds secrets'],
    ])('%s may not', (text, expected) => {
      expect(one('file', text)).toEqual([expected])
    })

    test('is a pattern only where any number may stand, and not from its first letter on', () => {
      expect(found([{ kind: 'file', word: pattern('/var/log/*.log') }])).toEqual([])
      for (const [text, repeats, kind] of [
        ['/var/log/*.log', false, 'file'],
        ['*.log', true, 'file'],
        ['?x', true, 'file'],
        ['[ab]', true, 'file'],
        ['x*', true, 'name'],
      ] as const) {
        expect(found([{ kind, word: pattern(text), repeats }])).toEqual([
          `ARGUMENT: ${text} is a pattern: quote it or spell it out`,
        ])
      }
      expect(found([{ kind: 'file', word: unknown('$x') }])).toEqual(['ARGUMENT: $x is not known before it runs'])
    })

    test('that only its attributes are told of may be a device, and a directory by its entries', () => {
      expect(one('file', '/dev/sda', 'ls')).toEqual([])
      expect(one('file', '//dev/sda', 'ls')).toEqual([])
      expect(one('file', '/dev/../etc/shadow', 'ls')).toHaveLength(1)
      expect(one('file', '/etc/shadow', 'ls')).toHaveLength(1)
      expect(one('file', 'x/dev/shadow', 'ls')).toHaveLength(1)
      expect(one('file', '/device/shadow', 'ls')).toHaveLength(1)
      expect(found([{ kind: 'file', word: pattern('/etc/*') }], 'du')).toEqual([])
      expect(found([{ kind: 'file', word: pattern('/etc/*') }], 'cat')).toHaveLength(1)
      expect(found([{ kind: 'file', word: pattern('/etc/ssl/*/*') }], 'du')).toHaveLength(1)
      expect(found([{ kind: 'file', word: pattern('/root/.ssh/*') }], 'du')).toHaveLength(1)
      expect(found([{ kind: 'file', word: pattern('/etc/sha*') }], 'du')).toHaveLength(1)
    })
  })

  describe('a tree', () => {
    const recursive = [{ manual: '', recursive: ['-r'] }]
    const etc = [{ kind: 'file' as const, word: word('/etc') }]

    test('is read with the option, or always', () => {
      const below = ['SENSITIVE_PATH: /etc has secrets below it']
      expect(found(etc, 'grep', recursive)).toEqual([])
      expect(found(etc, 'grep', recursive, ['-r'])).toEqual(below)
      expect(found(etc, 'grep', recursive, ['-x', '-r'])).toEqual(below)
      expect(found(etc, 'grep', recursive, ['-x'])).toEqual([])
      expect(found(etc, 'grep', [{ manual: '', recursive: true }])).toEqual(below)
      expect(found(etc, 'grep', [{ manual: '' }, { manual: '', recursive: true }])).toEqual(below)
    })

    test('without a file is the working directory', () => {
      expect(found([{ kind: 'text', word: word('x') }], 'grep', recursive, ['-r'])).toEqual([
        'SENSITIVE_PATH: reads everything below the working directory',
      ])
      expect(found([], 'grep', recursive)).toEqual([])
      expect(found([{ kind: 'file', word: word('/var/log/app') }], 'grep', recursive, ['-r'])).toEqual([])
    })
  })

  describe('a text', () => {
    test.each(['x', 'a /etc/shadow', 'etc/shadow', '/dev/sda', '/etc/shadow x', 'x@/etc/shadow', '+%F'])(
      '%j is inert',
      (text) => {
        expect(one('text', text)).toEqual([])
      },
    )
    test.each(['/etc/shadow', '@/etc/shadow', '</etc/shadow', '~/.ssh/id_rsa', './id_rsa', '../.ssh/id_rsa'])(
      '%j is plainly a path',
      (text) => {
        expect(one('text', text)).toHaveLength(1)
      },
    )
    test('is never a tree', () => {
      expect(
        found(
          [
            { kind: 'text', word: word('/etc') },
            { kind: 'file', word: word('/var/log') },
          ],
          'grep',
          [{ recursive: true }],
        ),
      ).toEqual([])
    })
  })

  test('what is written goes to /dev/null or to the screen', () => {
    expect([one('sink', '/dev/null'), one('sink', '-')]).toEqual([[], []])
    expect(one('sink', '/tmp/x')).toEqual(['ARGUMENT: /tmp/x would be written'])
  })

  describe('a host', () => {
    test.each(['db1', '@db1', 'bob@db1', 'db1:22', 'DB1', 'db1.', 'localhost', '127.0.0.1', '[::1]', '::1'])(
      '%s is known',
      (text) => {
        expect(one('host', text)).toEqual([])
      },
    )
    test.each(['evil.example', 'db1 x', '-db1', 'db1@', '@@db1', 'db@1', 'db1:', 'db1:123456', ''])(
      '%j is not',
      (text) => {
        expect(one('host', text)).toEqual([`EXFILTRATION: ${text} is a host that was not looked up`])
      },
    )
    test('of an address is known or not', () => {
      expect(one('url', 'http://db1/health')).toEqual([])
      expect(one('url', 'http://evil/x')).toEqual([
        'EXFILTRATION: http://evil/x is an address of a host that was not looked up',
      ])
    })
  })

  test.each([
    ['awk', '{print $1}', '{system("id")}'],
    ['sed', 'p', 'w x'],
    ['jq', '.a', 'env'],
    ['sql:mysql', 'SELECT 1', 'DROP TABLE t'],
    ['sql:sqlite', 'SELECT 1', 'DROP TABLE t'],
  ] as const)('a text of %s only looks or it does not', (kind, looks, acts) => {
    expect(one(kind, looks)).toEqual([])
    expect(one(kind, acts)).toEqual([expect.stringMatching(/^LANGUAGE: .* does more than look/)])
  })

  test('a kind that nobody knows a rule for never looks', () => {
    expect(one('tomorrow' as never, 'x')).toEqual(['INTERNAL: x is of a kind without a rule: tomorrow'])
  })

  describe('the host in a word', () => {
    test.each([
      ['db1', 'db1'],
      ['bob@db1', 'db1'],
      ['b-o.b_1@db1:2222', 'db1'],
      ['[fe80::1]:22', '[fe80::1]'],
      ['fe80::1', 'fe80::1'],
      ['::', '::'],
      ['::1', '::1'],
      ['a:b', 'a:b'],
      ['a:g', null],
      ['[host]', null],
      ['[]', null],
      ['-db1', null],
      ['bob@-db1', null],
      ['db1-', 'db1-'],
      ['1bob@db1', null],
      ['db1/x', null],
      ['host:1234567', null],
      ['a b', null],
    ])('%s: %s', (text, host) => {
      expect(hostOf(text)).toBe(host)
    })

    test.each([
      ['http://db1', 'db1'],
      ['HTTPS://db1:8080/x?y#z', 'db1'],
      ['http://[::1]:80/', '[::1]'],
      ['http://db1?x', 'db1'],
      ['xhttp://db1', null],
      ['ftp://db1', null],
      ['http://bob@db1', null],
      ['http://db1:x', null],
      ['http://db1/{a,b}', null],
      ['http://db1/\\x', null],
      ['http://db1/ x', null],
      ['http://db1\\@evil', null],
      ['http://', null],
    ])('of an address %s: %s', (text, host) => {
      expect(addressOf(text)?.host ?? null).toBe(host)
    })

    test.each([
      ['[::1]', true],
      ['x[::1]', false],
      ['[::1]x', false],
      ['DB1.', true],
      ['db1..', false],
      ['db.1', false],
      ['ip6-localhost', true],
    ])('%s is known: %s', (host, known) => {
      expect(isKnownHost(host, new Set(['db1']))).toBe(known)
    })
  })
})
