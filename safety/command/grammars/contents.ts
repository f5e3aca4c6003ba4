import type { Grammars } from '../grammar.ts'
import { each, gnu, spell } from './spell.ts'

/**
 * Contents of files, printed, counted, compared and dumped. `--files0-from` is left out everywhere: error texts print what it
 * read as names of files.
 */
export const contents: Grammars = {
  cat: {
    manual: 'cat(1), coreutils 9.1',
    options: spell({
      flag: `-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs
        --show-nonprinting ${gnu}`,
    }),
    operands: { rest: 'file' },
  },
  ...each('cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum', {
    // -c reads a list of names from a file and prints them: left out.
    manual: 'md5sum(1), coreutils 9.1',
    options: spell({ flag: `-b -t -z --binary --text --tag --zero ${gnu}`, number: '-l --length' }),
    operands: { rest: 'file' },
  }),
  cmp: {
    manual: 'cmp(1), diffutils 3.8',
    options: spell({
      flag: `-b -l -s --print-bytes --verbose --quiet --silent ${gnu}`,
      number: '-n --bytes',
      text: '-i --ignore-initial',
    }),
    operands: { first: ['file', 'file'], rest: 'number', min: 1 },
  },
  comm: {
    manual: 'comm(1), coreutils 9.1',
    options: spell({
      flag: `-1 -2 -3 -z --check-order --nocheck-order --total --zero-terminated ${gnu}`,
      text: '--output-delimiter',
    }),
    operands: { first: ['file', 'file'], min: 2 },
  },
  diff: {
    // --from-file, --to-file and -X read names of files: left out; so are -l and --paginate, which run pr(1).
    manual: 'diff(1), diffutils 3.8',
    options: spell({
      flag: `-a -b -B -c -d -e -E -i -N -p -q -r -s -t -T -u -w -y -Z --normal --brief --report-identical-files --side-by-side
        --show-c-function --expand-tabs --initial-tab --suppress-common-lines --left-column --recursive
        --no-dereference --new-file --unidirectional-new-file --ignore-case --ignore-tab-expansion
        --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines --text --strip-trailing-cr
        --minimal --speed-large-files ${gnu}`,
      'text?': '--color',
      number: '-C -U -W --width --tabsize',
      'number?': '--context --unified',
      text: '-F -I -x --show-function-line --ignore-matching-lines --exclude --label',
    }),
    operands: { first: ['file', 'file'], min: 2 },
    recursive: ['-r', '--recursive'],
  },
  ...each('hexdump hd', {
    // -f reads formats from a file: left out.
    manual: 'hexdump(1), bsdextrautils 2.38',
    options: spell({
      flag: '-b -c -C -d -o -v -x --one-byte-octal --one-byte-char --canonical --two-bytes-decimal --two-bytes-hex',
      number: '-n -s --length --skip',
      text: '-e --format',
    }),
    operands: { rest: 'file' },
  }),
  head: {
    manual: 'head(1), coreutils 9.1',
    options: spell({
      flag: `-q -v -z --quiet --silent --verbose --zero-terminated ${gnu}`,
      number: '-c -n --bytes --lines',
    }),
    digits: true,
    operands: { rest: 'file' },
  },
  od: {
    manual: 'od(1), coreutils 9.1',
    options: spell({
      flag: `-a -b -c -d -f -i -l -o -s -v -x --output-duplicates --traditional ${gnu}`,
      text: '-A -t --address-radix --format --endian',
      number: '-j -N -S -w --skip-bytes --read-bytes',
      'number?': '--strings --width',
    }),
    operands: { rest: 'file' },
  },
  strings: {
    // An @file names a file of options, so an operand must not begin with one; -T loads nothing but is left out with it.
    manual: 'strings(1), binutils 2.40',
    options: spell({
      flag: '-a -d -f -o -w --all --data --print-file-name --include-all-whitespace --help --version',
      number: '-n --bytes',
      text: '-e -s -t --encoding --output-separator --radix',
    }),
    digits: true,
    operands: { rest: 'file' },
    refuses: ['^@'],
  },
  tail: {
    manual: 'tail(1), coreutils 9.1',
    options: spell({
      flag: `-f -F -q -v -z --quiet --silent --verbose --retry --zero-terminated ${gnu}`,
      'text?': '--follow',
      number: '-c -n -s --bytes --lines --sleep-interval --max-unchanged-stats --pid',
    }),
    digits: true,
    operands: { rest: 'file' },
    endless: {
      when: ['-f', '-F', '--follow'],
      instead: { drop: ['-f', '-F', '--follow', '--retry'], add: ['-n', '200'] },
    },
  },
  wc: {
    manual: 'wc(1), coreutils 9.1',
    options: spell({
      flag: `-c -l -L -m -w --bytes --chars --lines --max-line-length --words ${gnu}`,
      text: '--total',
    }),
    operands: { rest: 'file' },
  },
  xxd: {
    // A second operand is the output file; -r writes back.
    manual: 'xxd(1), vim 9.0',
    style: 'word',
    options: spell({
      flag: '-a -b -C -d -e -E -i -p -ps -u -v -version -h -help',
      number: '-c -cols -g -groupsize -l -len -o -s -seek',
    }),
    operands: { first: ['file'] },
  },
}
