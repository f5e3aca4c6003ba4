import { describe, expect, test } from '@jest/globals'
import type { Word } from '../../../safety/command/parse.ts'
import { leadsTo, normalise, pathFinding, pathList } from '../../../safety/command/paths.ts'

const word = (text: string): Word => ({
  text,
  literal: !/[*?[]/.test(text),
  quoting: 'bare',
  pattern: /[*?[]/.test(text) ? text : null,
})
const found = (text: string, directories: string[] = [], tree = false) =>
  pathFinding(word(text), directories, tree ? 'prints tree' : 'prints')

describe('the target of a word', () => {
  test.each<[string, string[], string[]]>([
    ['/a/b', [], ['/a/b']],
    ['/a//b/./c/../d/', [], ['/a/b/d']],
    ['/..', [], ['/']],
    ['/', [], ['/']],
    ['', [], ['.']],
    ['.', [], ['.']],
    ['./x', [], ['x']],
    ['x/', [], ['x']],
    ['x/..', [], ['.']],
    ['x../.y', [], ['x../.y']],
    ['../x', [], ['../x', '/x']],
    ['../../x', [], ['../../x', '/x']],
    ['a/../../x', [], ['../x', '/x']],
    ['..', [], ['..', '/']],
    ['../..', [], ['../..', '/']],
    ['../x/a..', [], ['../x/a..', '/x/a..']],
    ['x', ['/etc', '/var'], ['x', '/etc/x', '/var/x']],
    ['../x', ['/etc/a'], ['../x', '/x', '/etc/x']],
    ['/x', ['/etc'], ['/x']],
    ['x/', ['/etc'], ['x', '/etc/x']],
    ['~', [], ['/root']],
    ['~/x', [], ['/root/x']],
    ['~root/x', [], ['/root/x']],
    ['~root', [], ['/root']],
    ['~bob/x', [], ['/home/bob/x']],
    ['~Bob/x', [], ['~Bob/x']],
    ['x~root', [], ['x~root']],
    ['x/~bob', [], ['x/~bob']],
    ['$HOME/x', [], ['/root/x']],
    ['$HOME', [], ['/root']],
    [`\${HOME}/x`, [], ['/root/x']],
    ['$HOMES/x', [], ['$HOMES/x']],
    ['x$HOME/y', [], ['x$HOME/y']],
    ['$PWD/x', [], ['x']],
    ['$PWD', ['/etc'], ['.', '/etc']],
    [`\${PWD}/x`, ['/etc'], ['x', '/etc/x']],
    ['$PWDS/x', [], ['$PWDS/x']],
    ['x$PWD/y', [], ['x$PWD/y']],
  ])('%j from %j: %j', (text, directories, expected) => {
    expect(normalise(text, directories)).toEqual(expected)
  })
})

describe('an error in reading a path', () => {
  test.each<[string, string[], boolean, string | null]>([
    ['/var/log/syslog', [], false, null],
    ['/etc/shadow', [], false, 'secret'],
    ['shadow', ['/etc'], false, 'secret'],
    ['sudoers', [], false, null],
    ['sudoers', ['/etc'], false, 'secret'],
    ['/etc/sha*', [], false, 'secret'],
    ['/etc/s?adow', [], false, 'secret'],
    ['/var/log/*.log', [], false, null],
    ['/dev/null', [], false, null],
    ['null', ['/dev'], false, 'secret'],
    ['null', ['/srv', '/dev'], false, 'secret'],
    ['/dev/zero', [], false, 'endless'],
    ['/dev/../etc/shadow', [], false, 'secret'],
    ['/root/.ssh/../x', [], false, 'secret'],
    ['/root/x/../y', [], false, null],
    ['/../x', [], false, null],
    ['../x', [], false, null],
    ['/etc', [], false, null],
    ['/etc', [], true, 'holds secrets'],
    ['/', [], true, 'holds secrets'],
    ['/home', [], true, 'holds secrets'],
    ['/home/bob', [], true, 'holds secrets'],
    ['/srv/app', [], true, 'holds secrets'],
    ['/var/log/nginx', [], true, null],
    ['/srv/app/app.conf', [], true, null],
    ['.', [], true, 'holds secrets'],
    ['./', [], true, 'holds secrets'],
    ['..', [], true, 'holds secrets'],
    ['../..', [], true, 'holds secrets'],
    ['.', [], false, null],
    ['..x', [], true, null],
    ['x..', [], true, 'holds secrets'],
    ['.git', [], true, 'holds secrets'],
    ['a/b', [], true, 'holds secrets'],
    ['a/b', ['/var/log'], true, null],
  ])('%j from %j, everything below it %s: %s', (text, directories, tree, expected) => {
    expect(found(text, directories, tree)).toBe(expected)
  })

  test('a wildcard is compared with each place that it could match', () => {
    const list = pathList(['/etc/shadow*', '/srv/secret/**'])
    const leads = (text: string, directories: string[] = []) => leadsTo(word(text), list, directories)
    expect([leads('sha*'), leads('sha*', ['/var', '/etc']), leads('sha*', ['/var'])]).toEqual([false, true, false])
    expect([leads('/srv/s*'), leads('/srv/s*/x'), leads('/srv/x*')]).toEqual([true, true, false])
    expect([leads('/etc/*.log'), leads('/etc/shadow-'), leads('/etc/sha')]).toEqual([false, true, false])
  })
})
