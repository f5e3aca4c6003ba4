import type { Grammars } from '../grammar.ts'
import { each, gnu, spell } from './spell.ts'

/** Archives and compressed files, listed, tested and printed. */
export const archives: Grammars = {
  ...each('bzip2 bunzip2 unxz unzstd xz zstd', {
    // The last mode wins, so that -t -d would replace the file: -d is in only with -c in the same word.
    manual: 'bzip2(1), xz(1), zstd(1)',
    options: spell({ flag: '-c -k -l -q -t -v -cd -dc --list --stdout --test --verbose' }),
    operands: { rest: 'file', min: 1 },
    requires: ['-c', '-cd', '-dc', '--stdout', '-l', '--list', '-t', '--test'],
    measures: { unless: ['-c', '-cd', '-dc', '--stdout'] },
  }),
  ...each('gzip gunzip', {
    // Without one of these they replace the file.
    manual: 'gzip(1), gzip 1.12',
    options: spell({ flag: '-c -d -k -l -q -t -v --decompress --list --stdout --test --verbose' }),
    operands: { rest: 'file', min: 1 },
    requires: ['-c', '--stdout', '-l', '--list', '-t', '--test'],
    measures: { unless: ['-c', '--stdout'] },
  }),
  tar: {
    // An archive `host:file` is fetched with rsh; -I, -F, --to-command and --checkpoint-action run programs.
    manual: 'tar(1), GNU tar 1.34',
    options: spell({
      flag: `-a -j -J -t -v -z --bzip2 --full-time --gzip --list --numeric-owner --utc --verbose --wildcards --xz --zstd
        ${gnu}`,
      file: '-f --file',
      text: '--exclude',
    }),
    bsd: 'tvfzjJa',
    bsdValues: { f: 'file' },
    operands: { rest: 'text' },
    requires: ['-t', '--list'],
    measures: {},
    // A first word of letters alone is read as options, whatever follows: `tar If program archive -t`.
    refuses: [':', '^[a-z0-9]+$'],
  },
  unzip: {
    // -p and -c print what is inside.
    manual: 'unzip(1), Info-ZIP 6.0',
    options: spell({ flag: '-C -l -q -t -v -z' }),
    operands: { first: ['file'], rest: 'text', min: 1 },
    requires: ['-l', '-t', '-v', '-z'],
    measures: {},
  },
  ...each('zcat bzcat xzcat zstdcat lz4cat gzcat', {
    manual: 'zcat(1), bzcat(1), xzcat(1), zstdcat(1)',
    options: spell({ flag: '-f -q -v --help --version' }),
    operands: { rest: 'file' },
  }),
  zipinfo: {
    manual: 'zipinfo(1), Info-ZIP 3.0',
    options: spell({ flag: '-1 -2 -C -h -l -m -s -t -T -v -z' }),
    measures: {},
    operands: { first: ['file'], rest: 'text', min: 1 },
  },
}
