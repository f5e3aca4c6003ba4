/** ESC and CSI, a bell, a right-to-left override, a zero-width space, and an OSC that would rename the window. */
export const hostile = 'a\u001b[2Jb\u009b31mc\u0007d\u202ee\u200bf\u001b]0;pwned\u0007\nnext line'

/** The first character that a terminal would act on, or null. */
export function harmfulIn(text: string): string | null {
  return [...text].find((each) => each !== '\n' && /[\p{Cc}\p{Cf}]/u.test(each)) ?? null
}
