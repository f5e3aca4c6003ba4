import { describe, expect, test } from '@jest/globals'
import { isGoodExit } from '../../../safety/command/exit-code.ts'
import { addressOf, hostOf, isKnownHost } from '../../../safety/command/hosts.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'

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
