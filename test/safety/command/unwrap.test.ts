import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { stepsForAnyText, stepsPerCharacter } from '../../../safety/command/analysis.ts'
import { countSteps, judgeCommand } from '../../../safety/command/judge.ts'
import { parse } from '../../../safety/command/parse.ts'
import { addressOf, hostOf, isKnownHost } from '../../../safety/command/remote-exec-wrappers.ts'
import { isGoodExit, unwrap } from '../../../safety/command/unwrap.ts'

describe('unwrap', () => {
  describe('unwrap', () => {
    const inner = (text: string): string[] => {
      const [simple] = parse(text)!.pipelines[0]!
      const name = simple!.words[0]!.text
      const found = unwrap(name, simple!.words, simple!.input, false)
      return (found?.inner ?? []).map((one) =>
        one.kind === 'script' ? `$ ${one.text}` : one.words.map((word) => word.text).join(' '),
      )
    }

    test.each([
      ['sudo -u bob -- x y', 'x y'],
      ['sudo -nu bob A=b x', 'x'],
      ['doas x', 'x'],
      ['su - bob -c "x y"', '$ x y'],
      ['runuser -u bob -- x', 'x'],
      ['env -i A=b C=d x y', 'x y'],
      ['env -S "x y"', '$ x y'],
      ['timeout -k 5 10s x', 'x'],
      ['nice -n 5 x', 'x'],
      ['nice -5 x', 'x'],
      ['ionice -c3 x', 'x'],
      ['chrt -f 50 x', 'x'],
      ['taskset -c 0-3 x', 'x'],
      ['stdbuf -oL x', 'x'],
      ['nohup x', 'x'],
      ['setsid -f x', 'x'],
      ['command -p x', 'x'],
      ['exec -a name x', 'x'],
      ['eval x y', '$ x y'],
      ['chroot --userspec=a:b /mnt x', 'x'],
      ['unshare -rm x', 'x'],
      ['nsenter -t 1 -m -u x', 'x'],
      ['watch -n 1 x y', '$ x y'],
      ['busybox x', 'x'],
      ['systemd-run --unit=a --wait x', 'x'],
      ['bash -euxc "x; y"', '$ x; y'],
      ['sh -o pipefail -c x', '$ x'],
      ['xargs -0 -n 1 x', 'x'],
      ['xargs -I{} x {}', 'x {}'],
      ['find / -name a -exec x {} \\; -exec y {} +', 'x {},y {},find / -name a'],
      ['ssh -p 22 bob@db1 x y', '$ x y'],
      ['ssh db1 -p 22 x', '$ x'],
      ['docker -D exec -it -u bob web x', 'x'],
      ['docker container exec web x', 'x'],
      ['docker compose -f a.yml exec -T web x', 'x'],
      ['docker run --rm -v /:/h alpine x', 'x'],
      ['podman exec web x', 'x'],
      ['kubectl -n a exec pod -c b -- x', 'x'],
      ['crictl exec -i abc x', 'x'],
      ['lxc exec box -- x', 'x'],
      ['pct exec 101 -- x', 'x'],
      ['ip netns exec blue x', 'x'],
      ['flock -n /tmp/l x', 'x'],
      ['flock /tmp/l -c x', '$ x'],
      ['script -qc x /dev/null', '$ x'],
      ['strace -f -o /tmp/t x', 'x'],
      ['setpriv --reuid=1 x', 'x'],
      ['gdb -batch -ex x', '$ x'],
      ['parallel x {} ::: a', 'x {},$ a'],
      ['trap x EXIT', '$ x'],
      ['sh <<< x', '$ x'],
    ])('the command inside is found: %s', (text, expected) => expect(inner(text).join(',')).toBe(expected))

    test.each(['ls x', 'docker ps', 'ip addr', 'kubectl get pods', 'find / -name x', 'command -v x'])(
      'what runs nothing is no wrapper: %s',
      (text) => expect(inner(text)).toEqual([]),
    )
  })

  describe('work', () => {
    const context = { knownHosts: new Set(['h']) }
    const single = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
    const double = (text: string) => `"${text.replace(/["\\$`]/g, '\\$&')}"`

    /** Ways in which one text holds another, some of them twice. */
    const wraps: ((text: string) => string)[] = [
      (text) => `sh -c ${single(text)}`,
      (text) => `bash <<< ${single(text)}`,
      (text) => `sh <<X\n${text}\nX`,
      (text) => `ruby -e ${single(`system(${double(text)}); \`${text}\``)}`,
      (text) => `perl -e ${single(`exec(${double(text)})`)} ${single(text)}`,
      (text) => `python3 -c ${single(`import os; os.system(${double(text)})`)}`,
      (text) => `echo $(${text})`,
      (text) => `echo ${text} | sh`,
      (text) => `find / -exec ${text} \\; -exec ${text} \\;`,
      (text) => `echo a b c d | xargs ${text}`,
      (text) => `parallel ${text} ::: a b c`,
      (text) => `alias a=${single(text)} b=${single(text)}`,
      (text) => `sudo ssh h ${single(text)}`,
      (text) => `awk ${single(`BEGIN { system(${double(text)}) }`)}`,
    ]
    const nested = fc
      .tuple(fc.array(fc.nat(wraps.length - 1), { maxLength: 14 }), fc.constantFrom('sh', 'id', 'ls -la /', 'rm -rf /'))
      .map(([ways, inner]) => {
        let text: string = inner
        for (const way of ways) {
          const wrapped = (wraps[way] as (text: string) => string)(text)
          if (wrapped.length > 8_000) break
          text = wrapped
        }
        return text
      })

    describe('judging a text costs little', () => {
      test('at most 48 steps for each character and twenty thousand for any text, however it nests', () => {
        fc.assert(
          fc.property(nested, (text) => {
            expect(countSteps(text, context)).toBeLessThanOrEqual(stepsPerCharacter * text.length + stepsForAnyText)
          }),
          { numRuns: 400 },
        )
        expect([stepsPerCharacter, stepsForAnyText]).toEqual([48, 20_000])
      })

      test.each([
        ['an interpreter whose shell reads the text it stands in', `sh <<< 'ruby -e "\`sh\`"'`],
        ['find in find', `${'find / -exec '.repeat(40)}id {} \\; ${'\\; '.repeat(39)}`],
        ['xargs in xargs', `echo ${'a '.repeat(40)}| ${'xargs '.repeat(40)}id`],
        [
          'shells in here-documents',
          Array.from({ length: 200 }).reduce((text, _, at) => `sh <<E${at}\n${text}\nE${at}`, 'id') as string,
        ],
      ])('%s ends, and does not run unasked', (_what, text) => {
        expect(['ask', 'refuse']).toContain(judgeCommand(text, context).verdict)
        expect(countSteps(text, context)).toBeLessThanOrEqual(stepsPerCharacter * text.length + stepsForAnyText)
      })

      test('what costs more than that is asked about with the reason, even where all that was seen only looks', () => {
        const text = `echo ${'a '.repeat(40)}| ${'xargs '.repeat(38)}id`
        expect(judgeCommand(text, context)).toMatchObject({ verdict: 'ask' })
        const verdict = judgeCommand(`${'find / -exec '.repeat(30)}id {} \\; ${'\\; '.repeat(29)}`, context)
        expect(verdict).toMatchObject({ verdict: 'ask' })
      })

      test('honest layers of quoting stay far below it', () => {
        let text = 'cat /var/log/syslog'
        for (let layer = 0; layer < 4; layer += 1) text = `sh -c ${single(text)}`
        expect(judgeCommand(text, context).verdict).toBe('run')
        expect(countSteps(text, context)).toBeLessThan(stepsForAnyText / 10)
      })
    })
  })
})

describe('carried', () => {
  describe('carried', () => {
    // What no approval lifts stays refused where a program with an escape to a shell carries it.

    const verdictOf = (text: string) => judgeCommand(text, { knownHosts: new Set(['db-osl-1']) }).verdict

    describe('a program with an escape to a shell', () => {
      test.each([
        "vim -c '!rm -rf /' -c q",
        "psql -c '\\! rm -rf /'",
        'psql -c "copy x to program \'rm -rf /etc\'"',
        "sqlite3 x '.shell rm -rf /'",
        "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm -rf /' x",
        "tar xf x --to-command='rm -rf /'",
        "socat - EXEC:'rm -rf /'",
        "sed '1e rm -rf /' /etc/hosts",
        "gdb -batch -ex 'shell rm -rf /'",
        "git -c alias.x='!rm -rf /' x",
        "git -c core.pager='rm -rf /' log",
        "ssh -o ProxyCommand='rm -rf /' db-osl-1 uptime",
        "ncat -l 9 --sh-exec 'rm -rf /'",
        'ncat -l 9 --sh-exec reboot',
        "rsync -e 'sh -c reboot' a b:",
        "capsh -- -c 'rm -rf /'",
        'screen -dmS x rm -rf /',
        'start-stop-daemon -S -x /bin/rm -- -rf /',
        'run0 rm -rf /',
        'prlimit --nproc=5 rm -rf /',
        'setarch x86_64 -R rm -rf /',
        '/lib64/ld-linux-x86-64.so.2 /bin/rm -rf /',
        "echo '* * * * * rm -rf /' | crontab -",
        "make -f - <<< 'all: ; rm -rf /'",
        "PROMPT_COMMAND='rm -rf /' bash -i",
        "PAGER='rm -rf /' git log",
        "printf %s 'rm -rf /' | head -1 | bash",
        "echo 'rm -rf /' | tee /dev/null | bash",
        "dd status=none <<< 'rm -rf /' | sh",
        'IFS=,; c=rm,-rf,/; $c',
        `mapfile -t m <<< 'rm -rf /'; eval "\${m[0]}"`,
      ])('%s is refused', (text) => {
        expect(verdictOf(text)).toBe('refuse')
      })

      test.each([
        "grep 'rm -rf /' /var/log/syslog",
        "echo 'do not run rm -rf /'",
        'psql -c "select query from pg_stat_activity where query like \'%rm -rf /%\'"',
        "journalctl -u nginx --grep 'rm -rf /'",
        "sed -n '/rm -rf \\//p' /var/log/syslog",
      ])('%s only speaks of it', (text) => {
        expect(verdictOf(text)).not.toBe('refuse')
      })
    })
  })

  describe('exit code', () => {
    const text = (command: string, code: number) => isGoodExit({ field: 'c', form: 'bash' }, { c: command }, code)
    const argv = (words: string[], code: number) => isGoodExit({ field: 'c', form: 'argv' }, { c: words }, code)

    test.each<[string, number, boolean]>([
      ['systemctl restart nginx', 0, true],
      ['systemctl restart nginx', 1, false],
      ['systemctl restart nginx', 3, false],
      ['systemctl is-active nginx', 3, true],
      ['systemctl is-active nginx', 4, false],
      ['git revert --no-edit HEAD', 128, false],
      ['git diff --exit-code', 1, true],
      ['grep -q x /etc/shadow', 1, true],
      ['grep -q x /etc/shadow', 2, false],
      ['rsync -a /a/ /b/', 24, true],
      ['rsync -a /a/ /b/', 23, false],
      ['fsck -y /dev/sdb1', 1, true],
      ['sudo -n diff a b', 1, true],
      ['timeout 5 grep x y', 124, false],
      ['bash -c "grep x y"', 1, true],
      ['cat x | grep y', 1, true],
      ['grep y x | tee out', 1, false],
      ['grep a b; rm c', 1, false],
      ['rm c && grep a b', 1, false],
      ['if grep a b; then rm c; fi', 1, false],
      ['$(grep a b)', 1, false],
      ['no-such-program', 127, false],
      ['constructor', 1, false],
      ['grep "', 1, false],
      ['', 1, false],
    ])('%s that ends with %i has done its work: %s', (command, code, good) => {
      expect(text(command, code)).toBe(good)
    })

    test('words without a shell are read like a text, through what only wraps them', () => {
      expect(argv(['diff', 'a', 'b'], 1)).toBe(true)
      expect(argv(['/usr/bin/sudo', '-u', 'root', 'diff', 'a', 'b'], 1)).toBe(true)
      expect(argv(['find', '/x', '-exec', 'grep', 'a', '{}', ';'], 1)).toBe(false)
      expect(argv([], 1)).toBe(false)
      expect(argv(['sh', '-c', 'exit 7'], 7)).toBe(false)
    })
  })

  describe('hosts', () => {
    test('a host is known when it was looked up, or is this machine', () => {
      const known = new Set(['db1', '10.0.0.5'])
      for (const host of ['db1', 'DB1', 'db1.', '10.0.0.5', 'localhost', '127.0.0.1', '[::1]'])
        expect(isKnownHost(host, known)).toBe(true)
      for (const host of ['db2', '127.1', '0', '2130706433', 'db1.attacker.example'])
        expect(isKnownHost(host, known)).toBe(false)
    })

    test.each([
      ['http://db1/x?y=z', 'db1'],
      ['https://db1:8443', 'db1'],
      ['http://[::1]:80/', '[::1]'],
      ['http://db1@attacker/', null],
      ['http://db1:x@attacker/', null],
      ['http://db1\\@attacker/', null],
      ['http://{db1,attacker}/', null],
      ['file:///etc/shadow', null],
      ['gopher://db1/', null],
      ['db1:8080/health', 'db1'],
      ['ftp.db1/x', null],
    ])('the host of %s is %s', (url, host) => expect(addressOf(url)?.host ?? null).toBe(host))

    test('a host may have a user and a port, and is no option', () => {
      expect(hostOf('bob@db1')).toBe('db1')
      expect(hostOf('db1:5432')).toBe('db1')
      expect(hostOf('-oProxyCommand=x')).toBeNull()
      expect(hostOf('a b')).toBeNull()
    })
  })

  describe('holes', () => {
    // Holes that mutation testing showed. Each was tried with the program itself.

    const judged = (text: string) => judgeCommand(text, { knownHosts: new Set() })

    test.each([
      ['print in awk goes on behind a comma and a line break', 'awk \'BEGIN { print 1,\n2 > "/etc/cron.d/x" }\''],
      ['print in awk goes on behind an operator and a line break', 'awk \'BEGIN { print 1 ||\n2 > "/etc/cron.d/x" }\''],
      ['a bracket right behind an open one is a character to awk', 'awk \'/[]/"]/{x=1}; {system("id")} #"\' x'],
      ['and to sed', "sed -n 's/[]/b/;#]/c/w /etc/cron.d/x' x"],
      ['cd takes options', 'cd -P /etc; cat sudoers'],
      ['cd takes two dashes', 'cd -- /etc; cat sudoers'],
      ['the seventh cd counts', 'cd /a; cd /b; cd /c; cd /d; cd /e; cd /f; cd /etc; cat sudoers'],
    ])('%s: it is asked about', (_title, text) => {
      expect(judged(text).verdict).not.toBe('run')
    })

    test.each([
      ['isolate takes a target without its ending', 'systemctl isolate poweroff'],
      ['env takes anything with a sign of equality for a variable', 'env 1=2 reboot'],
      ['runuser takes -c behind the user, as su does', 'runuser bob -c reboot'],
      ['env takes variables behind two dashes', 'env -- A=b reboot'],
      ['so does sudo', 'sudo -- A=b reboot'],
      ['the seventeenth argument of xargs counts', `echo ${'x '.repeat(16)}/ | xargs rm -rf`],
      ['a pattern names a file of the system', 'rm -f /etc/passw*'],
    ])('%s: it is never run', (_title, text) => {
      expect(judged(text).verdict).toBe('refuse')
    })
  })
})
