import { describe, expect, test } from '@jest/globals'
import { parse, type Word } from '../../../safety/command/parse.ts'
import { globExpression, globsMeet } from '../../../safety/command/patterns.ts'

const shown = ({ text, literal, quoting, pattern }: Word) =>
  `${text} ${literal ? 'known' : 'unknown'} ${quoting}${pattern === null ? '' : ` ${pattern}`}`
const wordsOf = (text: string) => parse(text)?.pipelines.flat()[0]?.words.slice(1).map(shown)

describe('a word', () => {
  test.each([
    ['x', 'x known bare'],
    ["'x'", 'x known whole'],
    ['"x"', 'x known whole'],
    ["x'y'", 'xy known split'],
    ['x"y"', 'xy known split'],
    ['\'x\'"y"', 'xy known split'],
    ['x\\y', 'xy known split'],
    ['$x', '$x unknown bare'],
    ['"$x"', '$x unknown whole'],
    ['"a$x"', 'a$x unknown whole'],
    ['a$x', 'a$x unknown bare'],
    ['*', '* unknown bare *'],
    ['a*b', 'a*b unknown bare a*b'],
    ['a**b', 'a**b unknown bare a*b'],
    ['a***', 'a*** unknown bare a*'],
    ['[ab]?', '[ab]? unknown bare [ab]?'],
    ["'a'*", 'a* unknown split'],
    ['"a"*', 'a* unknown split'],
    ['*"a"', '*a unknown split'],
    ['a\\b*', 'ab* unknown split'],
    ['$x*', '$x* unknown bare'],
    ['*$x', '*$x unknown bare'],
    ['*$x*', '*$x* unknown bare'],
    ['~/x', '~/x known bare'],
    ['~', '~ known bare'],
    ['~bob', '~bob unknown bare'],
    ['~bob/x', '~bob/x unknown bare'],
    ['~bob-2/x', '~bob-2/x unknown bare'],
    ['~+', '~+ unknown bare'],
    ['~3/x', '~3/x unknown bare'],
    ['~+/*', '~+/* unknown bare'],
    ['x~3', 'x~3 known bare'],
    ['?a?b?c?', '?a?b?c? unknown bare ?a?b?c?'],
    ['?a?b?c?d?e?', '?a?b?c?d?e? unknown bare ?a?b?c?d?e?'],
    ['?a?b?c?d?e?f?', '?a?b?c?d?e?f? unknown bare'],
  ])('%s is %s', (text, expected) => {
    expect(wordsOf(`ls ${text}`)).toEqual([expected])
  })

  test('that is a pattern of more than 200 characters is unknown', () => {
    expect(wordsOf(`ls ${'x'.repeat(199)}*`)?.[0]).toMatch(/x\*$/)
    expect(wordsOf(`ls ${'x'.repeat(200)}*`)?.[0]).toMatch(/unknown bare$/)
  })

  test.each([
    ['A=b', ['A=b known bare']],
    ["A='b c'", ['A=b c known whole']],
    ['A=$x', ['A=$x unknown bare']],
    ['A+=b', ['A+=b unknown bare']],
    ['A=(x)', ['A=(x) unknown bare']],
  ])('that looks like an assignment behind the command is a word: %s', (text, expected) => {
    expect(wordsOf(`export ${text}`)).toEqual(expected)
  })
})

describe('a text', () => {
  const marks = (text: string) => parse(text)?.shapes.map(({ shape, text: piece }) => `${shape}: ${piece}`)

  test('names its parts, shortened', () => {
    expect(marks(`echo $(echo ${'x'.repeat(70)})`)).toEqual([`substitution: $(echo ${'x'.repeat(70)})`])
    expect(marks(`echo $(echo ${'x'.repeat(73)})`)).toEqual([`substitution: $(echo ${'x'.repeat(70)}...`])
    expect(marks('ls {fd}>/dev/null')).toEqual(['expansion: fd'])
    expect(marks('f() { f | f & }; f')).toContain('fork bomb: f')
    expect(marks('f() { ls; f; }; f')).not.toContain('fork bomb: f')
    expect(marks('ls -la /x | grep x && df')).toEqual([])
  })

  test.each([
    ['if a; then b; elif c; then d; fi', []],
    ['case x in a) b;; esac', ['control flow']],
    ['time ls', []],
    ['! ls', []],
    ['[[ ! -f a && ( b == c || -z d ) ]]', ['test']],
    [`echo \${x:-y} \${x#y} \${x/a/b} \${x:1:2} \${x^} \${x@Q} \${!x*}`, Array(7).fill('expansion')],
    ['echo $((a + -b ? c : (d)))', ['arithmetic']],
    ['ls 2>&1 >/dev/null', []],
    ['cat <<E\nx\nE', ['here-document']],
  ])('%s contains %j', (text, shapes) => {
    expect([...new Set(parse(text)?.shapes.map(({ shape }) => shape))]).toEqual([...new Set(shapes)])
  })

  test('keeps its pipes together, and nested commands apart', () => {
    const tree = parse('a | b && c; (d | e); { f; }; g $(h) | (i)')
    const names = (pipelines: { words: Word[] }[][] | undefined) =>
      pipelines?.map((pipeline) => pipeline.map(({ words }) => words[0]?.text).join('|'))
    expect(names(tree?.pipelines)).toEqual(['a|b', 'c', 'd|e', 'f', 'i', 'g'])
    expect(names(tree?.nested)).toEqual(['h'])
  })

  test('knows the input of a command', () => {
    const input = (text: string) => parse(text)?.pipelines.flat()[0]?.input
    expect([input('cat <<< x'), input('cat <<E\nx\ny\nE'), input('cat')]).toEqual(['x', 'x\ny\n', null])
  })

  test('tells assignments and redirections from words', () => {
    const [simple] = parse('A=b C+=d E=(x) ls 2>x >>"y z" f')?.pipelines.flat() ?? []
    expect(simple?.assignments.map(({ name, value, plain }) => [name, value.text, plain])).toEqual([
      ['A', 'b', true],
      ['C', 'd', false],
      ['E', '', false],
    ])
    expect(simple?.redirections.map(({ operator, target, source }) => [operator, target.text, source])).toEqual([
      ['>', 'x', '2>x'],
      ['>>', 'y z', '>>"y z"'],
    ])
    expect(simple?.words.map(({ text }) => text)).toEqual(['ls', 'f'])
  })
})

describe('two patterns over paths meet', () => {
  test.each([
    ['/a/b', '/a/b', true],
    ['/a/b', '/a/c', false],
    ['/a', '/a/b', false],
    ['/a/b', '/a', false],
    ['/a/*', '/a/b', true],
    ['/a/*', '/a/b/c', false],
    ['/a/*', '/a', false],
    ['/a/**', '/a', true],
    ['/a/**', '/a/b/c', true],
    ['/a', '/a/**', true],
    ['/a/b/c', '/a/**', true],
    ['/a/b/c', '/**/c', true],
    ['/c', '/**/c', true],
    ['/a/b/c', '/**/d', false],
    ['/b', '/a/**', false],
    ['/a/**/d', '/a/b/**', true],
    ['/a/b*', '/a/*c', true],
    ['/a/b*', '/a/c*', false],
    ['/a/b?', '/a/bc', true],
    ['/a/b?', '/a/b', false],
    ['/a/bc', '/a/b?', true],
    ['/a/bcd', '/a/b?', false],
    ['/a/b*', '/a/b', true],
    ['/a/b', '/a/b*', true],
    ['/a/b', '/a/bc*', false],
    ['/a/*b*', '/a/xxbyy', true],
    ['/a/*b*', '/a/xxcyy', false],
    ['/a/[xy]z', '/a/xz', true],
    ['/a/[xyz]z', '/a/xx', false],
    ['/a/*', '/a/.b', false],
    ['/a/?b', '/a/.b', false],
    ['/a/[.]b', '/a/.b', false],
    ['/a/.b', '/a/*', false],
    ['/a/.*', '/a/.b', true],
    ['/a/.b', '/a/.*', true],
    ['/a/b*', '/a/b.c', true],
    ['/a/x*', '/a/.b', false],
  ])('%s and %s: %s', (left, right, meet) => {
    expect(globsMeet(left, right)).toBe(meet)
    expect(globsMeet(right, left)).toBe(meet)
  })

  test.each([
    ['**/x', 'x', true],
    ['**/x', 'a/b/x', true],
    ['**/x', 'ax', false],
    ['/a/**/b', '/a/b', true],
    ['/a/**/b', '/a/x/y/b', true],
    ['/a/**/b', '/ab', false],
    ['/a/**', '/a', true],
    ['/a/**', '/a/x/y', true],
    ['/a/**', '/ab', false],
    ['/a*', '/ab', true],
    ['/a*', '/a/b', false],
    ['/a?', '/ab', true],
    ['/a?', '/a', false],
    ['/a?', '/a/', false],
    ['/a[bc]', '/ab', true],
    ['/a[bc]', '/ad', false],
    ['/a[', '/a[', true],
    ['/a.b', '/axb', false],
    ['/a.b', '/a.b', true],
    ['/a+b(c)', '/a+b(c)', true],
  ])('%s stands for %s: %s', (pattern, path, stands) => {
    expect(globExpression([pattern, '/never']).test(path)).toBe(stands)
  })
})
