import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { parse, parse as parseText, type Tree, type Word } from '../../../safety/command/parse.ts'
import { globExpression, globsMeet } from '../../../safety/command/patterns.ts'
import { quote } from '../../../safety/command/unwrapped.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

describe('parse', () => {
  describe('parse', () => {
    const parse = (text: string): Tree => parseText(text)!

    const words = (text: string) =>
      parse(text).pipelines.map((line) => line.map((simple) => simple.words.map((word) => word.text)))
    const nested = (text: string) =>
      parse(text)
        .nested.flat()
        .map((simple) => simple.words.map((word) => word.text).join(' '))

    test('simple commands come out in order, grouped by pipe', () => {
      expect(words('a 1 | b "2 3" && c; d\ne')).toEqual([
        [
          ['a', '1'],
          ['b', '2 3'],
        ],
        [['c']],
        [['d']],
        [['e']],
      ])
      expect(parse('a | b').shapes).toEqual([])
    })

    test.each([
      ['ls $(x)', 'substitution'],
      ['ls `x`', 'substitution'],
      ['cat <(x)', 'process substitution'],
      ['ls $a $(x)', 'expansion'],
      [`ls "\${a:-$(x)}"`, 'expansion'],
      ['ls $((a[$(x)]))', 'arithmetic'],
      ['ls {a,$(x)}', 'brace'],
      ["ls $'a' $(x)", 'ANSI-C quoting'],
      ['ls ~+ $(x)', 'tilde'],
      ['! ( x ) > y', 'group'],
      ['for i in $(x); do y; done', 'control flow'],
      ['case a in b) x;; esac', 'control flow'],
      ['f() { x; }', 'function'],
      ['coproc x', 'coproc'],
      ['cat <<E\n$(x)\nE', 'here-document'],
      ['cat <<< "$(x)"', 'here-string'],
      ['[[ -f $(x) ]]', 'test'],
      ['a=($(x))', 'array'],
    ])('%s is marked, and the command inside is listed', (text, shape) => {
      expect(parse(text).shapes.map((found) => found.shape)).toContain(shape)
      expect(nested(text)).toContain('x')
    })

    test('background is marked, and what runs there is a command like any other', () => {
      expect(parse('x & y').shapes).toEqual([{ shape: 'background', text: '&' }])
      expect(words('x & y')).toEqual([[['x']], [['y']]])
    })

    test('quoting is told apart: none, round the word, inside it', () => {
      const [simple] = parse(`ls 'ls' "ls" l's' \\ls`).pipelines[0]!
      expect(simple!.words.map((word) => word.quoting)).toEqual(['bare', 'whole', 'whole', 'split', 'split'])
      expect(simple!.words.every((word) => word.literal && word.text === 'ls')).toBe(true)
    })

    test('what bash cannot read comes back as an error beside what could be read', () => {
      const tree = parse("reboot; ls 'x")
      expect(tree.error).not.toBeNull()
      expect(tree.pipelines[0]![0]!.words[0]!.text).toBe('reboot')
    })
  })

  describe('parse edges', () => {
    const shown = ({ text, literal, quoting, pattern }: Word) =>
      `${text} ${literal ? 'known' : 'unknown'} ${quoting}${pattern === null ? '' : ` ${pattern}`}`
    const wordsOf = (text: string) => parse(text)?.pipelines.flat()[0]?.words.slice(1).map(shown)

    describe('a word', () => {
      test.each([
        ['x', 'x known bare'],
        ["'x'", 'x known whole'],
        ['"x"', 'x known whole'],
        ["x'y'", 'xy known split'],
        ['x"y"', 'xy known split'],
        ['\'x\'"y"', 'xy known split'],
        ['x\\y', 'xy known split'],
        ['$x', '$x unknown bare'],
        ['"$x"', '$x unknown whole'],
        ['"a$x"', 'a$x unknown whole'],
        ['a$x', 'a$x unknown bare'],
        ['*', '* unknown bare *'],
        ['a*b', 'a*b unknown bare a*b'],
        ['a**b', 'a**b unknown bare a*b'],
        ['a***', 'a*** unknown bare a*'],
        ['[ab]?', '[ab]? unknown bare [ab]?'],
        ["'a'*", 'a* unknown split'],
        ['"a"*', 'a* unknown split'],
        ['*"a"', '*a unknown split'],
        ['a\\b*', 'ab* unknown split'],
        ['$x*', '$x* unknown bare'],
        ['*$x', '*$x unknown bare'],
        ['*$x*', '*$x* unknown bare'],
        ['~/x', '~/x known bare'],
        ['~', '~ known bare'],
        ['~bob', '~bob known bare'],
        ['~bob/x', '~bob/x known bare'],
        ['~bob-2/x', '~bob-2/x known bare'],
        ['~+', '~+ unknown bare'],
        ['~3/x', '~3/x unknown bare'],
        ['~+/*', '~+/* unknown bare'],
        ['x~3', 'x~3 known bare'],
        ['?a?b?c?', '?a?b?c? unknown bare ?a?b?c?'],
        ['?a?b?c?d?e?', '?a?b?c?d?e? unknown bare ?a?b?c?d?e?'],
        ['?a?b?c?d?e?f?', '?a?b?c?d?e?f? unknown bare'],
      ])('%s is %s', (text, expected) => {
        expect(wordsOf(`ls ${text}`)).toEqual([expected])
      })

      test('that is a pattern of any length is none to compare', () => {
        expect(wordsOf(`ls ${'x'.repeat(199)}*`)?.[0]).toMatch(/x\*$/)
        expect(wordsOf(`ls ${'x'.repeat(200)}*`)?.[0]).toMatch(/unknown bare$/)
      })

      test.each([
        ['A=b', ['A=b known bare']],
        ["A='b c'", ['A=b c known whole']],
        ['A=$x', ['A=$x unknown bare']],
        ['A+=b', ['A+=b unknown bare']],
        ['A=(x)', ['A=(x) unknown bare']],
      ])('that looks like an assignment behind the command is a word: %s', (text, expected) => {
        expect(wordsOf(`export ${text}`)).toEqual(expected)
      })
    })

    describe('a text', () => {
      const marks = (text: string) => parse(text)?.shapes.map(({ shape, text: piece }) => `${shape}: ${piece}`)

      test('names what stands in it, shortened', () => {
        expect(marks(`echo $(echo ${'x'.repeat(70)})`)).toEqual([`substitution: $(echo ${'x'.repeat(70)})`])
        expect(marks(`echo $(echo ${'x'.repeat(73)})`)).toEqual([`substitution: $(echo ${'x'.repeat(70)}...`])
        expect(marks('ls {fd}>/dev/null')).toEqual(['expansion: fd'])
        expect(marks('f() { f | f & }; f')).toContain('fork bomb: f')
        expect(marks('f() { ls; f; }; f')).not.toContain('fork bomb: f')
        expect(marks('ls -la /x | grep x && df')).toEqual([])
      })

      test.each([
        ['if a; then b; elif c; then d; fi', []],
        ['case x in a) b;; esac', ['control flow']],
        ['time ls', []],
        ['! ls', []],
        ['[[ ! -f a && ( b == c || -z d ) ]]', ['test']],
        [`echo \${x:-y} \${x#y} \${x/a/b} \${x:1:2} \${x^} \${x@Q} \${!x*}`, Array(7).fill('expansion')],
        ['echo $((a + -b ? c : (d)))', ['arithmetic']],
        ['ls 2>&1 >/dev/null', []],
        ['cat <<E\nx\nE', ['here-document']],
      ])('%s holds %j', (text, shapes) => {
        expect([...new Set(parse(text)?.shapes.map(({ shape }) => shape))]).toEqual([...new Set(shapes)])
      })

      test('keeps its pipes together, and what is nested apart', () => {
        const tree = parse('a | b && c; (d | e); { f; }; g $(h) | (i)')
        const names = (pipelines: { words: Word[] }[][] | undefined) =>
          pipelines?.map((pipeline) => pipeline.map(({ words }) => words[0]?.text).join('|'))
        expect(names(tree?.pipelines)).toEqual(['a|b', 'c', 'd|e', 'f', 'i', 'g'])
        expect(names(tree?.nested)).toEqual(['h'])
      })

      test('knows what arrives on the input of a command', () => {
        const input = (text: string) => parse(text)?.pipelines.flat()[0]?.input
        expect([input('cat <<< x'), input('cat <<E\nx\ny\nE'), input('cat')]).toEqual(['x', 'x\ny\n', null])
      })

      test('tells assignments and redirections from words', () => {
        const [simple] = parse('A=b C+=d E=(x) ls 2>x >>"y z" f')?.pipelines.flat() ?? []
        expect(simple?.assignments.map(({ name, value, plain }) => [name, value.text, plain])).toEqual([
          ['A', 'b', true],
          ['C', 'd', false],
          ['E', '', false],
        ])
        expect(simple?.redirections.map(({ operator, target, source }) => [operator, target.text, source])).toEqual([
          ['>', 'x', '2>x'],
          ['>>', 'y z', '>>"y z"'],
        ])
        expect(simple?.words.map(({ text }) => text)).toEqual(['ls', 'f'])
      })
    })

    describe('two patterns over paths meet', () => {
      test.each([
        ['/a/b', '/a/b', true],
        ['/a/b', '/a/c', false],
        ['/a', '/a/b', false],
        ['/a/b', '/a', false],
        ['/a/*', '/a/b', true],
        ['/a/*', '/a/b/c', false],
        ['/a/*', '/a', false],
        ['/a/**', '/a', true],
        ['/a/**', '/a/b/c', true],
        ['/a', '/a/**', true],
        ['/a/b/c', '/a/**', true],
        ['/a/b/c', '/**/c', true],
        ['/c', '/**/c', true],
        ['/a/b/c', '/**/d', false],
        ['/b', '/a/**', false],
        ['/a/**/d', '/a/b/**', true],
        ['/a/b*', '/a/*c', true],
        ['/a/b*', '/a/c*', false],
        ['/a/b?', '/a/bc', true],
        ['/a/b?', '/a/b', false],
        ['/a/bc', '/a/b?', true],
        ['/a/bcd', '/a/b?', false],
        ['/a/b*', '/a/b', true],
        ['/a/b', '/a/b*', true],
        ['/a/b', '/a/bc*', false],
        ['/a/*b*', '/a/xxbyy', true],
        ['/a/*b*', '/a/xxcyy', false],
        ['/a/[xy]z', '/a/xz', true],
        ['/a/[xyz]z', '/a/xx', false],
        ['/a/*', '/a/.b', false],
        ['/a/?b', '/a/.b', false],
        ['/a/[.]b', '/a/.b', false],
        ['/a/.b', '/a/*', false],
        ['/a/.*', '/a/.b', true],
        ['/a/.b', '/a/.*', true],
        ['/a/b*', '/a/b.c', true],
        ['/a/x*', '/a/.b', false],
      ])('%s and %s: %s', (left, right, meet) => {
        expect(globsMeet(left, right)).toBe(meet)
        expect(globsMeet(right, left)).toBe(meet)
      })

      test.each([
        ['**/x', 'x', true],
        ['**/x', 'a/b/x', true],
        ['**/x', 'ax', false],
        ['/a/**/b', '/a/b', true],
        ['/a/**/b', '/a/x/y/b', true],
        ['/a/**/b', '/ab', false],
        ['/a/**', '/a', true],
        ['/a/**', '/a/x/y', true],
        ['/a/**', '/ab', false],
        ['/a*', '/ab', true],
        ['/a*', '/a/b', false],
        ['/a?', '/ab', true],
        ['/a?', '/a', false],
        ['/a?', '/a/', false],
        ['/a[bc]', '/ab', true],
        ['/a[bc]', '/ad', false],
        ['/a[', '/a[', true],
        ['/a.b', '/axb', false],
        ['/a.b', '/a.b', true],
        ['/a+b(c)', '/a+b(c)', true],
      ])('%s stands for %s: %s', (pattern, path, stands) => {
        expect(globExpression([pattern, '/never']).test(path)).toBe(stands)
      })
    })
  })
})

describe('properties', () => {
  // 100,000 cases in all: what holds for every command, not for the ones somebody thought of.

  const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web']) }
  const strictness = { run: 0, ask: 1, refuse: 2 }
  const strict = (text: string): number => {
    const { verdict, code, reason } = judgeCommand(text, context)
    if (code === 'INTERNAL') throw new Error(`${text}: ${reason}`)
    return strictness[verdict]
  }

  beforeAll(loadSql)

  const argv = fc.oneof(
    fc.constantFrom(
      ...`ls|ls -la /var/log|df -h|cat /etc/hosts|cat /etc/shadow|ps aux|reboot|rm -rf /|rm -rf /tmp/x|tail -n 5 /var/log/syslog
|journalctl -u nginx|systemctl status nginx|systemctl restart nginx|systemctl reboot|frobnicate --all|docker ps|docker exec web ls /
|ping -c 1 evil.example|curl -s http://localhost/|find /etc -name x|find / -delete|git status|grep -r x /etc|mkfs.ext4 /dev/sda
|chmod -R 777 /|kill -9 1|ssh db1 uptime|sudo ls|env LD_PRELOAD=x ls|head -20 /etc/passwd|dd if=/dev/zero of=/dev/sda|mv /etc /x`
        .split('|')
        .map((text) => text.trim().split(' ')),
    ),
    fc.array(
      fc.oneof(
        fc.constantFrom(
          'ls',
          'cat',
          'rm',
          '-rf',
          '-la',
          '--',
          '/',
          '/etc',
          '/etc/shadow',
          '/tmp/x',
          'sudo',
          'find',
          '-exec',
          ';',
          'x',
          '-c',
          'sh',
          'reboot',
          '-n',
          '5',
          'timeout',
          'env',
          'A=b',
          'xargs',
          'docker',
          'exec',
          'web',
          '*',
          'awk',
          '{print $1}',
          'grep',
          '-r',
        ),
        fc.string({ maxLength: 6, unit: 'grapheme-ascii' }),
      ),
      { minLength: 1, maxLength: 6 },
    ),
  )

  const text = argv.map((words) => words.map(quote).join(' '))

  const wrap: readonly ((text: string) => string)[] = [
    (text) => `sudo ${text}`,
    (text) => `sudo -u bob -- ${text}`,
    (text) => `env ${text}`,
    (text) => `env LC_ALL=C ${text}`,
    (text) => `nice -n 5 ${text}`,
    (text) => `nohup ${text}`,
    (text) => `setsid ${text}`,
    (text) => `command -- ${text}`,
    (text) => `stdbuf -oL ${text}`,
    (text) => `busybox ${text}`,
    (text) => `chroot /mnt ${text}`,
    (text) => `xargs ${text}`,
    (text) => `sh -c ${quote(text)}`,
    (text) => `bash -lc ${quote(text)}`,
    (text) => `su -c ${quote(text)}`,
    (text) => `eval ${quote(text)}`,
    (text) => `ssh db1 ${quote(text)}`,
    (text) => `ssh elsewhere ${quote(text)}`,
    (text) => `docker exec web ${text}`,
    (text) => `docker run alpine ${text}`,
    (text) => `kubectl exec web -- ${text}`,
    (text) => `nsenter -t 1 -m -- ${text}`,
    (text) => `systemd-run ${text}`,
    (text) => `flock /tmp/l ${text}`,
    (text) => `script -qc ${quote(text)}`,
    // A bare `;` or `+` among the words would end what find runs.
    (text) => (/(?:^| )(?:';'|\+)/.test(text) ? `nohup ${text}` : `find /tmp -exec ${text} \\;`),
  ]

  /** What makes of a command something that no program can be given as words. */
  const enclose: readonly ((text: string) => string)[] = [
    (text) => `( ${text} )`,
    (text) => `{ ${text}; }`,
    (text) => `echo $(${text})`,
    (text) => `! ${text}`,
    (text) => `if ${text}; then ls; fi`,
    (text) => `f() { ${text}; }`,
  ]

  const append: readonly ((text: string) => string)[] = [
    (text) => `${text}; ls`,
    (text) => `ls; ${text}`,
    (text) => `${text} && ls`,
    (text) => `ls || ${text}`,
    (text) => `${text} | head`,
    (text) => `ls | ${text}`,
    (text) => `${text} |& cat`,
    (text) => `${text} & ls`,
    (text) => `${text}\nls`,
    (text) => `${text} 2>/dev/null`,
    (text) => `${text} > /tmp/x`,
    (text) => `${text} || rm x`,
  ]

  const runs = { numRuns: 10_000 }

  test('wrapping a command never lowers its verdict, to any depth', () => {
    fc.assert(
      fc.property(
        text,
        fc.array(fc.constantFrom(...wrap), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...enclose),
        (bare, layers, last) => {
          // The shell keyword is not the program, an assignment is no command, and what begins with - is an option of a wrapper, quoted or not.
          fc.pre(!/^(?:!|time|[A-Za-z_]\w*=|'?-|'?[;&|()<>{}])/.test(bare))
          let wrapped = bare
          let least = strict(bare)
          for (const layer of [...layers, last]) {
            wrapped = layer(wrapped)
            const now = strict(wrapped)
            if (now < least) throw new Error(`${wrapped} is judged less strictly than without the last layer`)
            least = now
          }
        },
      ),
      runs,
    )
  })

  test('appending and piping never lower a verdict', () => {
    fc.assert(
      fc.property(text, fc.array(fc.constantFrom(...append), { minLength: 1, maxLength: 3 }), (bare, steps) => {
        const longer = steps.reduce((text, step) => step(text), bare)
        expect(strict(longer)).toBeGreaterThanOrEqual(strict(bare))
      }),
      runs,
    )
  })

  test('blanks, quotes round whole words and comments change nothing', () => {
    const blank = fc.constantFrom(' ', '  ', '\t', ' \\\n ')
    fc.assert(
      fc.property(
        argv,
        blank,
        fc.boolean(),
        fc.constantFrom('', ' # reboot', '\n', '  ', ' ;'),
        (words, between, double, end) => {
          fc.pre(words.every((word) => word !== '' && !/[\n]/.test(word)))
          const plain = words.map(quote).join(' ')
          const quoted = words.map((word) =>
            double && !/["$`\\!]/.test(word) ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`,
          )
          fc.pre(!words[0]!.includes("'") && words[0] !== '!' && !/^(?:time|\w+=.*)$/.test(words[0]!))
          expect(strict(quoted.join(between) + end)).toBe(strict(plain))
        },
      ),
      runs,
    )
  })

  test('quotes inside the words never lower a verdict', () => {
    fc.assert(
      fc.property(argv, fc.nat(5), (words, at) => {
        const split = words.map((word) =>
          /^[\w/.-]{2,}$/.test(word)
            ? `${word.slice(0, 1 + (at % (word.length - 1)))}''${word.slice(1 + (at % (word.length - 1)))}`
            : quote(word),
        )
        expect(strict(split.join(' '))).toBeGreaterThanOrEqual(strict(words.map(quote).join(' ')))
      }),
      runs,
    )
  })

  test('a shell makes of an argv what the argv is', () => {
    fc.assert(
      fc.property(argv, (words) => {
        fc.pre(words.every((word) => !/['~]/.test(word)) && !/^(?:\W|time$|\w+=)/.test(words[0]!))
        expect(strictness[judgeArgv(words, context).verdict]).toBe(strict(words.map((word) => `'${word}'`).join(' ')))
      }),
      { numRuns: 5_000 },
    )
  })

  test('no text makes the judge throw', () => {
    const bytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
    const shellish = fc
      .array(
        fc.constantFrom(
          '$(',
          ')',
          '`',
          '"',
          "'",
          '{',
          '}',
          ';',
          '|',
          '&',
          '<<E',
          '\n',
          'E',
          '[[',
          ']]',
          '((',
          '))',
          'ls',
          ' ',
          '$',
          '*',
          '>',
          '<',
          '=',
          'if',
          'fi',
          'then',
          'case',
          'esac',
          '\\',
          '~',
          '#',
          '!',
          'sh -c',
          'find -exec',
          'awk',
          'xargs',
          ':::',
        ),
        { maxLength: 20 },
      )
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(bytes, shellish, fc.string({ unit: 'binary', maxLength: 40 })), (text) => {
        const { code, reason } = judgeCommand(text, context)
        if (code === 'INTERNAL') throw new Error(reason)
      }),
      { numRuns: 8_000 },
    )
  })
})
