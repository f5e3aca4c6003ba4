/**
 * Proves that jq and yq only read their input and compute. Functions that are not listed may reach
 * beyond the input, such as `env`, `input_filename` and yq's `load_str`, or never end.
 */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/**
 * Functions of jq 1.7 that stay within the input and define nothing, and operators of yq 4 that
 * only compute.
 */
const functions = words(`
  abs add all any arrays ascii ascii_downcase ascii_upcase booleans bsearch capture ceil contains combinations cos date dateadd datesub del delpaths
  empty endswith error explode fabs finites first flatten floor fmax fmin fmod from_entries fromdate fromdateiso8601 fromjson fromstream getpath
  gmtime group_by gsub has have_decnum have_literal_numbers implode in index indices infinite input input_line_number inputs inside isempty isinfinite
  isnan isnormal isvalid iterables join keys keys_unsorted last leaf_paths length limit localtime log log10 log2 ltrimstr map map_values match max
  max_by min min_by mktime nan nearbyint normals not now nth nulls numbers objects path paths pick range recurse recurse_down reverse rindex rint
  round rtrimstr scalars scan select setpath sin skip sort sort_by split splits sqrt startswith strflocaltime strftime strings strptime sub test
  to_entries toarray toboolean todate todateiso8601 tojson tonumber tostream tostring transpose trim trimstr ltrim rtrim trunc truncate_stream type
  unique unique_by utf8bytelength values walk with_entries IN INDEX GROUP_BY significand logb
  column comments document_index documentIndex downcase upcase file_index fileIndex filename filter format_datetime from_unix from_yaml head_comment
  foot_comment line line_comment lineComment headComment footComment ireduce key kind omit parent pivot shuffle sort_keys sortKeys split_doc splitDoc
  style tag to_json to_number to_string to_unix to_yaml toyaml tz anchor alias is_key with_dtf`)

/** Words of the language. Excluded: `def`, `include` and `import`, which bring in code. */
const keywords = words('if then elif else end as reduce foreach try catch label break and or true false null')

/** Matches functions that may never end, or grow without a limit in the text. */
const endless =
  /(?<![.\w$])(?:def|while|until|repeat)(?!\w)|(?<![.\w$])range\s*\((?!\s*(?:\d{1,6}|length)(?:\s*;\s*(?:\d{1,6}|length))?\s*\))|\*\s*(?:\d{7,}|\d[\d.]*[eE])|(?:\d{7,}|\d[\d.]*[eE]\+?\d+)\s*\*/

/**
 * Matches functions that make much data from little: `recurse` over paths that it creates itself,
 * combinations, powers, an index of many digits, and a replacement that an old jq never ends.
 */
const growing =
  /(?<![.\w$])(?:recurse\s*\((?!\s*(?:\.[\w.]*)?(?:\.?\[\])\??\s*\))|(?:combinations|pow|pow10|exp|exp2|exp10|ldexp|scalb|scalbln|gamma|tgamma)(?!\w)|g?sub\s*\(\s*"[\^$]?"\s*;)|\[\s*-?\d{6,}/

/** Most values that a program may make of one line. */
const maxMade = 1_000_000
/** Most doublings of one value: ten doublings make it a thousand times as long. */
const maxDoublings = 10

export function inspectJq(program: string): string | null {
  const unbounded = endless.exec(program) ?? growing.exec(program)
  if (unbounded) return `${unbounded[0]} may never end`
  // Multiplies nested ranges and products.
  const counts = [...program.matchAll(/(?:(?<![.\w$])range\s*\(\s*(?:\d+\s*;\s*)?|\*\s*)(\d+|length)|(\d+)(?=\s*\*)/g)]
  const made = counts.reduce(
    (product, [, right, left]) => product * Math.max(1, right === 'length' ? 1_000 : Number(right ?? left)),
    1,
  )
  if (made > maxMade) return `the filter makes more than ${maxMade} values from one value`
  return findUnlisted(program) ?? findDoubling(program)
}

/**
 * Finds the first word of a program that is not a field, a key, a variable or a listed function.
 */
function findUnlisted(program: string): string | null {
  const code = codeOf(program)
  if (code === null) return 'a comment, or a text that does not end'
  const open: string[] = []
  let before = ''
  for (const { 0: token, index } of code.matchAll(
    /\$\w+|\.\.|\.(?:[A-Za-z_]\w*)?|@\w+|[A-Za-z_]\w*(?:::\w+)*|\d[\d.]*(?:[eE][+-]?\d+)?|\S/g,
  )) {
    if (/^[([{]$/.test(token)) open.push(token)
    else if (/^[)\]}]$/.test(token)) open.pop()
    else if (token === '$ENV' || token.startsWith('$__')) return `${token} reaches beyond the input`
    else if (/^[A-Za-z_]/.test(token) && !functions.has(token) && !keywords.has(token)) {
      const isKey = open.at(-1) === '{' && /^[{,]$/.test(before) && /^\s*[:,}]/.test(code.slice(index + token.length))
      if (!isKey) return `${token} is not known to use only the input`
    }
    before = token
  }
  return null
}

/**
 * Returns the program without its texts; null if it has a comment or an open text. Between `\\(`
 * and `)` a text is code, which stays, in brackets.
 */
function codeOf(program: string): string | null {
  let code = ''
  /** Number of open brackets in each open text. */
  const depths: number[] = []
  let isText = false
  for (let at = 0; at < program.length; at += 1) {
    const character = program[at]!
    if (isText) {
      if (program.startsWith('\\(', at)) {
        code += '('
        depths.push(0)
        isText = false
      }
      if (character === '\\') at += 1
      else if (character === '"') isText = false
      continue
    }
    // Refuses a comment, because versions end it differently.
    if (character === '#') return null
    if (character === '(' && depths.length > 0) depths[depths.length - 1]! += 1
    else if (character === ')' && depths.length > 0) {
      const depth = depths.pop()!
      if (depth > 0) depths.push(depth - 1)
      else isText = true
    }
    // Replaces a text by the value 0, even if it is the name of a field.
    if (character === '"') {
      isText = true
      code += ' 0 '
    } else code += character
  }
  return isText || depths.length > 0 ? null : code
}

/** Finds a value that is joined with itself, which soon exceeds any memory. */
function findDoubling(program: string): string | null {
  const whole = String.raw`(?<![\w\].)?"])\.(?![\w."[(])`
  const doublings = program.match(new RegExp(`${whole}\\s*[+,]\\s*${whole}|\\(\\s*\\d+\\s*,`, 'g'))?.length ?? 0
  const rounds = [...program.matchAll(/(?<![.\w$])(?:reduce|foreach)(?!\w)/g)]
  const isRepeated = rounds.some(({ index }) => (program.slice(index).match(new RegExp(whole, 'g'))?.length ?? 0) > 1)
  if (doublings > maxDoublings || (isRepeated && /[+,*]/.test(program)))
    return 'the filter may double a value without a bound'
  return /\*/.test(program) && /\bas\s+\$/.test(program) && /\d{7,}|\d[eE]\+?\d/.test(program)
    ? 'the filter may repeat a text without a bound'
    : null
}
