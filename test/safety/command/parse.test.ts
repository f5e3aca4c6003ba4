import { expect, test } from '@jest/globals'
import { parse as parseText, type Tree } from '../../../safety/command/parse.ts'

const parse = (text: string): Tree => parseText(text)!

const words = (text: string) =>
  parse(text).pipelines.map((line) => line.map((simple) => simple.words.map((word) => word.text)))
const nested = (text: string) =>
  parse(text)
    .nested.flat()
    .map((simple) => simple.words.map((word) => word.text).join(' '))

test('simple commands are returned in order, grouped by pipe', () => {
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
  [String.raw`ls $'\x61' $(x)`, 'ANSI-C quoting'],
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

test('background is marked, and its command is judged like any other', () => {
  expect(parse('x & y').shapes).toEqual([{ shape: 'background', text: '&' }])
  expect(words('x & y')).toEqual([[['x']], [['y']]])
})

test('quoting is distinguished: none, round the word, inside it', () => {
  const [simple] = parse(`ls 'ls' "ls" l's' \\ls`).pipelines[0]!
  expect(simple!.words.map((word) => word.quoting)).toEqual(['bare', 'whole', 'whole', 'split', 'split'])
  expect(simple!.words.every((word) => word.literal && word.text === 'ls')).toBe(true)
})

test('text that bash cannot read is an error beside the readable part', () => {
  const tree = parse("reboot; ls 'x")
  expect(tree.error).not.toBeNull()
  expect(tree.pipelines[0]![0]!.words[0]!.text).toBe('reboot')
})
