/** ESC and CSI, a bell, a right-to-left override, a zero-width space, and an OSC that would rename the window. */
export const hostile = 'a\u001b[2Jb\u009b31mc\u0007d\u202ee\u200bf\u001b]0;pwned\u0007\nnext line'

/** What else a terminal acts on or leaves out: a link, the clipboard, a carriage return, fillers, marks that pile up, wide letters. */
export const hostileToo = [
  '\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007 \u001b]52;c;cm0gLXJmIC8=\u0007\u001bP+q\u001b\\',
  'safe\rrm -rf /\u0008\u0008\u007f\u0085\u009d',
  'a\u00adb\u034fc\u061cd\u115fe\u3164f\uffa0g\u2800h\ufe0fi\ufff9j\u{e0041}k\u{e0101}\u2066l',
  `z${'\u0301'.repeat(60)}`,
  '寿司'.repeat(40),
].join(' ')

/** The first character that a terminal would act on or leave out, or null. */
export function harmfulIn(text: string): string | null {
  return (
    [...text].find((each) => each !== '\n' && /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u.test(each)) ??
    null
  )
}
