import { describe, expect, test } from '@jest/globals'
import type { Grammar, ValueKind } from '../../../safety/command/grammar.ts'
import type { CommandReading, OptionMatch } from '../../../safety/command/options.ts'
import type { Word } from '../../../safety/command/parse.ts'
import { addressOf, hostOf, isKnownHost } from '../../../safety/command/remote-exec-wrappers.ts'
import { valueFindings } from '../../../safety/command/values.ts'

const word = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })
const pattern = (text: string): Word => ({ text, literal: false, quoting: 'bare', pattern: text })
const unknown = (text: string): Word => ({ text, literal: false, quoting: 'bare', pattern: null })

type Given = { kind: ValueKind; word: Word; repeats?: boolean }
function found(values: Given[], name = 'cat', grammars: Partial<Grammar>[] = [{}], options: string[] = []): string[] {
  const reading: CommandReading = {
    values: values.map((value) => ({ repeats: true, ...value })),
    found: options.map((option): OptionMatch => ({ name: option, at: 1, clustered: false, valueAt: null })),
    operands: [],
    grammars: grammars as Grammar[],
    chosenAt: 0,
    problem: null,
  }
  return valueFindings(reading, {
    name,
    directories: [],
    knownHosts: new Set(['db1']),
    knownNames: new Set<string>(),
    names: new Set<string>(),
    secrets: [],
  }).map(({ code, reason }) => `${code}: ${reason}`)
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

  test('is a pattern only where any number may be, and not from its first letter on', () => {
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

  test('of which only attributes are shown may be a device, and a directory with its entries', () => {
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

test('output goes to /dev/null or to the screen', () => {
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
] as const)('a text of %s that does more than read is found', (kind, looks, acts) => {
  expect(one(kind, looks)).toEqual([])
  expect(one(kind, acts)).toEqual([expect.stringMatching(/^LANGUAGE: .* does more than read/)])
})

test('a kind without a rule never only reads', () => {
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
