import { expect, test } from '@jest/globals'
import { isGoodExit } from '../../../safety/command/unwrap.ts'

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

test('words without a shell are read like a text, through programs that only wrap them', () => {
  expect(argv(['diff', 'a', 'b'], 1)).toBe(true)
  expect(argv(['/usr/bin/sudo', '-u', 'root', 'diff', 'a', 'b'], 1)).toBe(true)
  expect(argv(['find', '/x', '-exec', 'grep', 'a', '{}', ';'], 1)).toBe(false)
  expect(argv([], 1)).toBe(false)
  expect(argv(['sh', '-c', 'exit 7'], 7)).toBe(false)
})
