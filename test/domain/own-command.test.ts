import { expect, test } from '@jest/globals'
import { buildProgram } from '../../cli/program.ts'
import { commandPrefix, inCheckout, ownCommands, spellCommands } from '../../domain/own-command.ts'

test('every command of the program can be printed for the place where it is read', async () => {
  const names = (await buildProgram()).commands.map((command) => command.name())
  expect(names.toSorted()).toEqual([...ownCommands].toSorted())
})

test.each([
  ['npm started it', { npm_lifecycle_event: 'start' }, 'npm run -s nightshift --'],
  ['a person runs it through npm', { npm_lifecycle_event: 'nightshift' }, 'npm run -s nightshift --'],
  ['systemd or a link started it', {}, 'nightshift'],
  ['npm runs something else', { npm_lifecycle_event: 'test' }, 'nightshift'],
  [
    'an image says what it is',
    { NIGHTSHIFT_COMMAND: 'docker compose exec api nightshift', npm_lifecycle_event: 'start' },
    'docker compose exec api nightshift',
  ],
])('if %s, a command begins with the program of that place', (_what, environment, prefix) => {
  expect(commandPrefix(environment)).toBe(prefix)
})

test.each([
  ['See "nightshift doctor".', 'See "npm run -s nightshift -- doctor".'],
  ['\nExample:\n  nightshift incidents list', '\nExample:\n  npm run -s nightshift -- incidents list'],
  [
    'systemctl start nightshift-worker, by the nightshift team',
    'systemctl start nightshift-worker, by the nightshift team',
  ],
  ['http://nightshift status, /opt/nightshift start', 'http://nightshift status, /opt/nightshift start'],
])('of %j a checkout shows %j', (text, shown) => {
  expect(spellCommands(text, inCheckout)).toBe(shown)
  expect(spellCommands(text, 'nightshift')).toBe(text)
})
