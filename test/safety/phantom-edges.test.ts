import { describe, expect, test } from '@jest/globals'
import { phantomOf } from '../../safety/phantom.ts'

const nothing = { writes: 0, reads: 0 }
const claimed = (text: string, done = nothing) => phantomOf(text, done)?.category ?? null

describe('what is not the model speaking', () => {
  test.each([
    ['code', 'See ```\nI restarted mysql.\n``` above.'],
    ['code that never ends', 'Plan:\n```\nI restarted mysql.\nThe node is down.'],
    ['one word of code', 'The call `i restarted mysql` is missing.'],
    ['a quoted line', '> I restarted mysql.'],
    ['an indented quoted line', 'They wrote:\n  > I restarted mysql.\n'],
    ['straight quotes', 'Its comment "i restarted mysql" is old.'],
    ['curly quotes', 'Its comment “i restarted mysql” is old.'],
    ['guillemets', 'Its comment «i restarted mysql» is old.'],
    ['single quotes', "Its comment 'i restarted mysql' is old."],
    ['single quotes before a full stop', "Its comment is 'i restarted mysql'."],
    ['a question', 'Was it that I restarted mysql?'],
  ])('%s is no claim', (_title, text) => {
    expect(claimed(text)).toBe(null)
  })

  test.each([
    ['behind code', '```\nls\n``` I restarted mysql.'],
    ['behind a quoted line', '> who did it?\nI restarted mysql.'],
    ['behind straight quotes', 'The alert "disk full" is done. I restarted mysql.'],
    ['behind curly quotes', 'The note “x” is old. I restarted mysql.'],
    ['behind guillemets', 'The note «x» is old. I restarted mysql.'],
    ['behind an apostrophe', "The shard's fine. I've restarted it's mysql, and that's all."],
    ['with a comparison in it', 'At load 4 > 3 I restarted mysql.'],
    ['behind a question', 'Which one? I restarted mysql.'],
    ['between two quotes', 'A "b" and I restarted mysql "c".'],
    ['with a heading', '## I restarted mysql'],
    ['in a list', '  - I restarted mysql'],
    ['as a numbered step', '1) Restarted the node'],
    ['behind a full stop and two blanks', 'No fault there.  I restarted mysql.'],
    ['on the next line but one', 'It is not clear\n\nI restarted mysql.'],
    ['behind a semicolon', 'It was not me; I restarted mysql'],
    ['behind "but"', 'I should wait but I restarted mysql'],
    ['behind ", but"', 'I should wait, but I restarted mysql'],
    ['behind "and i"', 'I could wait and i restarted mysql'],
  ])('%s a claim is one', (_title, text) => {
    expect(claimed(text)).toBe('action')
  })
})

describe('the clause decides', () => {
  test.each([
    ['a denial before the claim', 'I have not restarted mysql', null],
    ['a denial in another sentence', 'It is not the disk. I restarted mysql.', 'action'],
    ['a denial behind the claim', 'I restarted mysql, not the host', 'action'],
    ['somebody else behind it', 'mysql has been restarted by the operator', null],
    ['a threshold', 'The CPU usage limit is 80%', null],
    ['a value', 'The CPU usage is 80%', 'metrics'],
    ['a limit beside a state', 'The node is down, as configured', 'state'],
    ['work on the incident', 'I updated the incident', null],
    ['work on the incident by no one in particular', 'The incident has been updated to critical', 'action'],
    ['work in the middle of a word', 'Wifi restarted the incident', null],
  ])('%s: %s', (_title, text, expected) => {
    expect(claimed(text)).toBe(expected)
  })

  test('a state said in a sentence of limits is still a state', () => {
    expect(claimed('Usually fine, the server is down')).toBe('state')
  })
})

test('the phrase is short, and without the blanks around it', () => {
  expect(phantomOf('CPU usage on a b c is   95%', nothing)).toBe(null)
  const call = phantomOf('\n   Action: restart\n   Action Input: {}', nothing)
  expect(call).toEqual({ category: 'fake_call', phrase: 'Action: restart\n   Action Input:' })
  const long = phantomOf(`Action: ${'x'.repeat(200)}\nAction Input: {}`, nothing)
  expect(long?.phrase).toHaveLength(80)
  const metric = phantomOf(`disk ${'usage of '}${'x'.repeat(40)} ${'y'.repeat(40)} is 95%`, nothing)
  expect(metric?.phrase).toHaveLength(80)
})

test('only the first 20,000 characters are read', () => {
  expect(claimed(`${'x. '.repeat(6_000)}I restarted mysql.`)).toBe('action')
  expect(claimed(`${'x. '.repeat(7_000)}I restarted mysql.`)).toBe(null)
})

test('what was done may be said', () => {
  expect(claimed('I restarted mysql.', { writes: 1, reads: 0 })).toBe(null)
  expect(claimed('The node is now down.', { writes: 1, reads: 0 })).toBe('state')
  expect(claimed('The node is now down.', { writes: 0, reads: 1 })).toBe(null)
})
