import { expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'

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
