/** A word as bash reads it back: bare where nothing in it is special, else in single quotes. */
export function quote(text: string): string {
  return /^(?:~$|~(?=\/)|[\w@%+:,./-])[\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
