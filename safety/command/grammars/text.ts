import { type Grammar, type Grammars, gnu, sameGrammar, spellOptions } from '../grammar.ts'

// Excluded: -f and --exclude-from read patterns from a file.
const grep: Grammar = {
  manual: 'grep(1), GNU grep 3.8',
  options: spellOptions({
    flag: `-a -b -c -E -F -G -h -H -i -I -l -L -n -o -P -q -r -R -s -T -v -w -x -y -z -Z -U --extended-regexp --fixed-strings
      --basic-regexp --perl-regexp --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data --no-messages
      --invert-match --byte-offset --line-number --line-buffered --with-filename --no-filename --only-matching --quiet
      --silent --text --recursive --dereference-recursive --files-without-match --files-with-matches --count
      --initial-tab --null ${gnu}`,
    number: '-A -B -C -m --after-context --before-context --context --max-count',
    text: '-d -D -e --regexp --binary-files --directories --devices --exclude --exclude-dir --include --label',
    'text?': '--color --colour',
  }),
  digits: true,
  operands: { first: ['text'], rest: 'file', min: 1, unlessOption: ['-e', '--regexp'] },
  recursive: ['-r', '-R', '--recursive', '--dereference-recursive', '-d', '--directories'],
}

/** Programs that read text and print text. */
export const text: Grammars = {
  ...sameGrammar('awk gawk mawk nawk', {
    // Excluded: -f and -i read a program, -l loads code, -o, -p and -d write. Long options differ
    // between the three awks.
    manual: 'awk(1), POSIX; gawk(1); mawk(1)',
    options: spellOptions({ text: '-F -v' }),
    operands: { first: ['awk'], rest: 'file', min: 1 },
    // Refuses wide formats in a variable, because a variable may be a format.
    refuses: ['^\\w+=.*(?:%|\\\\(?:0?45|x25))[^a-z%]*(?:\\d{5}|\\*)', '^\\w+=.*(?:%|\\\\(?:0?45|x25))[-+ #0]*[\\d.]*$'],
  }),
  ...sameGrammar('base64 base32', {
    manual: 'base64(1), coreutils 9.1',
    options: spellOptions({ flag: `-d -i --decode --ignore-garbage ${gnu}`, number: '-w --wrap' }),
    operands: { first: ['file'] },
  }),
  column: {
    manual: 'column(1), bsdextrautils 2.38',
    options: spellOptions({
      flag: '-e -J -L -n -t -x --table --json --keep-empty-lines --fillrows --table-noheadings --help --version',
      number: '-c -l --output-width --table-columns-limit',
      text: `-d -E -H -N -o -O -R -s -T -W --output-separator --separator --table-columns --table-hide --table-name
        --table-noextreme --table-order --table-right --table-truncate --table-wrap`,
    }),
    operands: { rest: 'file' },
  },
  cut: {
    manual: 'cut(1), coreutils 9.1',
    options: spellOptions({
      flag: `-n -s -z --complement --only-delimited --zero-terminated ${gnu}`,
      text: '-b -c -d -f --bytes --characters --delimiter --fields --output-delimiter',
    }),
    operands: { rest: 'file' },
  },
  echo: { manual: 'echo(1), coreutils 9.1; bash(1)', style: 'plain', operands: { rest: 'text' } },
  ...sameGrammar('expand unexpand', {
    manual: 'expand(1), coreutils 9.1',
    options: spellOptions({ flag: `-a -i --all --initial --first-only ${gnu}`, text: '-t --tabs' }),
    operands: { rest: 'file' },
  }),
  expr: { manual: 'expr(1), coreutils 9.1', style: 'plain', operands: { rest: 'text', min: 1 } },
  ...sameGrammar('fmt fold', {
    manual: 'fmt(1), fold(1), coreutils 9.1',
    options: spellOptions({
      flag: `-b -c -s -t -u --bytes --spaces --split-only --uniform-spacing ${gnu}`,
      number: '-w --width',
    }),
    operands: { rest: 'file' },
  }),
  ...sameGrammar('grep egrep fgrep', grep),
  ...sameGrammar('true false :', { manual: 'true(1), coreutils 9.1', style: 'plain', operands: { rest: 'text' } }),
  iconv: {
    // Excluded: -o, which writes.
    manual: 'iconv(1), glibc 2.36',
    options: spellOptions({ flag: '-c -l -s --list --silent', text: '-f -t --from-code --to-code' }),
    operands: { rest: 'file' },
  },
  join: {
    manual: 'join(1), coreutils 9.1',
    options: spellOptions({
      flag: `-i -z --ignore-case --check-order --nocheck-order --header --zero-terminated ${gnu}`,
      text: '-1 -2 -a -e -j -o -t -v',
    }),
    operands: { first: ['file', 'file'], min: 2 },
  },
  jq: {
    // Excluded: -f reads a program, -L a library; --arg, whose two values a grammar cannot express.
    manual: 'jq(1), jq 1.6',
    options: spellOptions({
      flag: `-a -c -C -e -j -M -n -r -R -s -S --ascii-output --compact-output --color-output --exit-status --join-output
        --monochrome-output --null-input --raw-output --raw-input --slurp --sort-keys --tab --stream --seq --unbuffered
        -h --help -V --version`,
      number: '--indent',
    }),
    operands: { first: ['jq'], rest: 'file', min: 1 },
  },
  nl: {
    manual: 'nl(1), coreutils 9.1',
    options: spellOptions({
      flag: `-p --no-renumber ${gnu}`,
      text: '-b -d -f -h -n -s --body-numbering --footer-numbering --header-numbering --number-format --number-separator',
      number: '-i -l -v -w --line-increment --starting-line-number --number-width',
    }),
    operands: { rest: 'file' },
  },
  paste: {
    manual: 'paste(1), coreutils 9.1',
    options: spellOptions({ flag: `-s -z --serial --zero-terminated ${gnu}`, text: '-d --delimiters' }),
    operands: { rest: 'file' },
  },
  printf: {
    // Excluded: -v assigns and %n stores; both options evaluate a subscript in bash, which can run
    // a command.
    manual: 'printf(1), coreutils 9.1; bash(1)',
    style: 'plain',
    operands: { rest: 'text', min: 1 },
    refuses: ['%[^a-z%]*[hjlqtz]*n', '^-v', '%[^a-z%]*(?:\\d{5}|[*])'],
  },
  rev: { manual: 'rev(1), util-linux 2.38', operands: { rest: 'file' } },
  rg: {
    // Excluded: --pre and --hostname-bin run a program, -z runs decompressors, -f and --ignore-file
    // read lists.
    manual: 'rg(1), ripgrep 14.1',
    options: spellOptions({
      flag: `-a -c -F -h -H -i -I -l -L -n -N -o -P -p -q -s -S -u -v -V -w -x -. --count --count-matches --fixed-strings --help
        --hidden --ignore-case --invert-match --line-number --no-line-number --files --files-with-matches
        --files-without-match --follow --heading --no-heading --json --no-filename --with-filename --no-ignore
        --no-messages --one-file-system --only-matching --pcre2 --multiline --multiline-dotall --quiet --smart-case
        --case-sensitive --stats --text --trim --unrestricted --version --vimgrep --word-regexp --line-regexp --no-config
        --column`,
      number: `-A -B -C -d -m -M --after-context --before-context --context --max-count --max-columns --max-depth --threads
        -j`,
      text: '-e -g -r -t -T --color --colors --glob --iglob --regexp --replace --sort --sortr --type --type-not',
    }),
    operands: { first: ['text'], rest: 'file', min: 1, unlessOption: ['-e', '--regexp', '--files'] },
    recursive: true,
  },
  sed: {
    // Excluded: -i edits, -f reads a program. The inspector of the language decides about w, r, e
    // and the like.
    manual: 'sed(1), GNU sed 4.9',
    options: spellOptions({
      flag: `-E -n -r -s -u -z --posix --quiet --silent --regexp-extended --separate --unbuffered --null-data --sandbox --debug
        ${gnu}`,
      number: '-l --line-length',
      sed: '-e --expression',
    }),
    operands: { first: ['sed'], rest: 'file', min: 1, unlessOption: ['-e', '--expression'] },
  },
  seq: {
    manual: 'seq(1), coreutils 9.1',
    options: spellOptions({ flag: `-w --equal-width ${gnu}`, text: '-f -s --format --separator' }),
    operands: { first: ['number', 'number', 'number'], min: 1 },
    // Refuses too many lines, too small steps, and a width that fills memory.
    refuses: ['\\d{8}', '\\.\\d{3}', '[eE]\\d', '%\\D*\\d{4}'],
  },
  sort: {
    // Excluded: -o and -T write, --compress-program runs a program, --files0-from and
    // --random-source read other files.
    manual: 'sort(1), coreutils 9.1',
    options: spellOptions({
      flag: `-b -c -C -d -f -g -h -i -m -M -n -r -R -s -u -V -z --ignore-leading-blanks --dictionary-order --ignore-case
        --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort
        --reverse --version-sort --merge --stable --unique --zero-terminated --debug ${gnu}`,
      text: '-k -S -t --key --buffer-size --field-separator --sort',
      'text?': '--check',
      number: '--parallel --batch-size',
    }),
    operands: { rest: 'file' },
  },
  tac: {
    manual: 'tac(1), coreutils 9.1',
    options: spellOptions({ flag: `-b -r --before --regex ${gnu}`, text: '-s --separator' }),
    operands: { rest: 'file' },
  },
  tr: {
    manual: 'tr(1), coreutils 9.1',
    options: spellOptions({ flag: `-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1 ${gnu}` }),
    operands: { first: ['text', 'text'], min: 1 },
  },
  uniq: {
    // Refuses a second operand, which is the output file.
    manual: 'uniq(1), coreutils 9.1',
    options: spellOptions({
      flag: `-c -d -D -i -u -z --count --repeated --ignore-case --unique --zero-terminated ${gnu}`,
      number: '-f -s -w --skip-fields --skip-chars --check-chars',
      'text?': '--all-repeated --group',
    }),
    operands: { first: ['file'] },
  },
  yq: {
    // Allows options that read in both of the programs with this name. Excluded: -i edits, and -s
    // of one splits into files.
    manual: 'yq 4.44 (mikefarah); yq 3.4 (kislyuk)',
    options: spellOptions({
      flag: '-C -e -M -N -P -r --colors --exit-status --no-colors --no-doc --prettyPrint --help --version',
    }),
    keywords: ['e', 'eval', 'ea', 'eval-all'],
    operands: { first: ['jq'], rest: 'file', min: 1 },
    // Refuses an escaped backslash before a quote, because the two programs end a text differently.
    refuses: ['\\\\\\\\"'],
  },
  ...sameGrammar('zgrep zegrep zfgrep bzgrep xzgrep zstdgrep', {
    ...grep,
    manual: 'zgrep(1), gzip 1.12',
    options: spellOptions({
      flag: '-a -c -E -F -G -h -H -i -l -n -o -P -q -s -v -w -x --ignore-case --count --line-number --no-filename',
      number: '-A -B -C -m',
      text: '-e',
    }),
    operands: { first: ['text'], rest: 'file', min: 1, unlessOption: ['-e'] },
    recursive: undefined,
  }),
}
