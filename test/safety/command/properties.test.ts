import { beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { quote } from '../../../safety/command/unwrapped.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

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
