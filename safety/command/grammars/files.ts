import { type Grammars, gnu, sameGrammar, spellOptions } from '../grammar.ts'

/** Programs that read files from outside: names, sizes, owners, kinds. */
export const files: Grammars = {
  ...sameGrammar('basename dirname', {
    manual: 'basename(1), dirname(1), coreutils 9.1',
    options: spellOptions({ flag: `-a -z --multiple --zero ${gnu}`, text: '-s --suffix' }),
    operands: { rest: 'text', min: 1 },
  }),
  df: {
    // Excluded: --sync, which writes cached data to disk.
    manual: 'df(1), coreutils 9.1',
    options: spellOptions({
      flag: `-a -h -H -i -k -l -P -T -v --all --human-readable --si --inodes --local --no-sync --portability --print-type
        --total ${gnu}`,
      text: '-B --block-size -t --type -x --exclude-type',
      'text?': '--output',
    }),
    operands: { rest: 'file' },
  },
  du: {
    // Excluded: -X, which reads patterns from a file without printing them; no investigation needs
    // it.
    manual: 'du(1), coreutils 9.1',
    options: spellOptions({
      flag: `-0 -a -b -c -D -h -H -k -l -L -m -P -s -S -x --null --all --apparent-size --bytes --total --dereference-args
        --human-readable --inodes --dereference --count-links --no-dereference --separate-dirs --si --summarize
        --one-file-system ${gnu}`,
      number: '-d --max-depth',
      text: '-B --block-size -t --threshold --time-style --exclude',
      'text?': '--time',
    }),
    operands: { rest: 'file' },
  },
  file: {
    // Excluded: -f prints names from a file; -m and -C read and write magic files; -S disables the
    // sandbox; -z runs programs.
    manual: 'file(1), file 5.44',
    options: spellOptions({
      flag: `-0 -b -h -i -k -L -N -n -p -r -s -v --brief --mime --mime-type --mime-encoding --extension --keep-going
        --dereference --no-dereference --no-pad --print0 --special-files --raw ${gnu}`,
      text: '-e -F --exclude --separator',
    }),
    operands: { rest: 'file', min: 1 },
  },
  find: {
    // Excluded: -exec and the like, which run programs and are judged elsewhere; -delete, -fls,
    // -fprint, -fprint0 and -fprintf, which write.
    manual: 'find(1), findutils 4.9',
    style: 'word',
    options: spellOptions({
      flag: `-H -L -P -daystart -depth -d -empty -executable -readable -writable -false -true -follow -ignore_readdir_race
        -noignore_readdir_race -ls -mount -xdev -noleaf -nogroup -nouser -nowarn -warn -print -print0 -prune -quit
        -a -and -o -or -not -help --help -version --version`,
      number: '-amin -atime -cmin -ctime -mmin -mtime -maxdepth -mindepth -inum -links -used -gid -uid',
      text: `-fstype -group -user -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname
        -perm -printf -size -type -xtype -newermt -newerct -newerat`,
      file: '-anewer -cnewer -newer -samefile',
    }),
    operands: { rest: 'file' },
    keywords: ['(', ')', '!', ','],
  },
  getfacl: {
    manual: 'getfacl(1), acl 2.3',
    options: spellOptions({
      flag: `-a -c -d -e -E -L -n -p -P -R -s -t --access --absolute-names --default --omit-header --all-effective
        --no-effective --skip-base --recursive --logical --physical --tabular --numeric ${gnu}`,
    }),
    operands: { rest: 'file', min: 1 },
  },
  getfattr: {
    manual: 'getfattr(1), attr 2.5',
    options: spellOptions({
      flag: '-d -h -L -P -R --absolute-names --dump --no-dereference --only-values --recursive --help --version',
      text: '-e -m -n --encoding --match --name',
    }),
    operands: { rest: 'file', min: 1 },
  },
  ...sameGrammar('locate plocate mlocate', {
    // Excluded: -S, which mlocate has and which only prints counts; -d, which reads other
    // databases.
    manual: 'locate(1), plocate 1.1',
    options: spellOptions({
      flag: '-A -b -c -e -i -w -0 --all --basename --count --existing --ignore-case --wholename --null --help --version',
      number: '-l -n --limit',
      text: '-r --regexp',
    }),
    operands: { rest: 'text' },
  }),
  ls: {
    manual: 'ls(1), coreutils 9.1',
    options: spellOptions({
      flag: `-1 -a -A -b -B -c -C -d -D -f -F -g -G -h -H -i -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -x -X -Z --all
        --almost-all --author --escape --ignore-backups --directory --dired --no-group --human-readable --si --inode
        --kibibytes --dereference --dereference-command-line --numeric-uid-gid --literal --file-type --hide-control-chars
        --show-control-chars --quote-name --reverse --recursive --size --context --full-time --group-directories-first
        --zero ${gnu}`,
      number: '-T -w --tabsize --width',
      text: '-I --block-size --format --hide --ignore --indicator-style --quoting-style --sort --time --time-style',
      'text?': '--color --classify --hyperlink',
    }),
    operands: { rest: 'file' },
  },
  lsattr: {
    manual: 'lsattr(1), e2fsprogs 1.47',
    options: spellOptions({ flag: '-a -d -l -p -R -v -V' }),
    operands: { rest: 'file' },
  },
  namei: {
    manual: 'namei(1), util-linux 2.38',
    options: spellOptions({
      flag: `-l -m -n -o -v -x --long --modes --nosymlinks --owners --vertical --mountpoints ${gnu}`,
    }),
    operands: { rest: 'file', min: 1 },
  },
  ...sameGrammar('readlink realpath', {
    manual: 'readlink(1), realpath(1), coreutils 9.1',
    options: spellOptions({
      flag: `-e -f -L -m -n -P -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing --logical --physical
        --quiet --silent --strip --no-symlinks --no-newline --verbose --zero ${gnu}`,
      file: '--relative-to --relative-base',
    }),
    operands: { rest: 'file', min: 1 },
  }),
  stat: {
    manual: 'stat(1), coreutils 9.1',
    options: spellOptions({
      flag: `-f -L -t --dereference --file-system --terse ${gnu}`,
      text: '-c --format --printf --cached',
    }),
    operands: { rest: 'file', min: 1 },
  },
  ...sameGrammar('test [', {
    // Excluded: -v and -R of bash, which evaluate a subscript that can run a command.
    manual: 'test(1), coreutils 9.1',
    style: 'word',
    options: spellOptions({
      file: '-b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x -nt -ot -ef',
      text: '-n -z',
      number: '-eq -ne -lt -le -gt -ge',
      flag: '-a -o',
    }),
    operands: { rest: 'file' },
    keywords: ['!', '(', ')', '=', '==', '!=', ']'],
  }),
  tree: {
    // Excluded: -o writes; -R with -H and -o writes pages; --fromfile and --gitfile read lists.
    manual: 'tree(1), tree 2.1',
    options: spellOptions({
      flag: `-a -A -C -d -D -f -F -g -h -i -l -n -N -p -q -Q -r -s -t -u -U -v -x -c -J -X --dirsfirst --du --si --inodes --device
        --noreport --prune --gitignore --matchdirs --ignore-case --metafirst --help --version`,
      number: '-L',
      'number?': '--filelimit',
      text: '-I -P',
      'text?': '--charset --sort --timefmt',
    }),
    operands: { rest: 'file' },
  },
}

/**
 * Programs that print, count, compare and dump the contents of files. `--files0-from` is excluded
 * everywhere, because errors print the names that it read.
 */
export const contents: Grammars = {
  cat: {
    manual: 'cat(1), coreutils 9.1',
    options: spellOptions({
      flag: `-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs
        --show-nonprinting ${gnu}`,
    }),
    operands: { rest: 'file' },
  },
  ...sameGrammar('cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum', {
    // Excluded: -c reads a list of names from a file and prints them.
    manual: 'md5sum(1), coreutils 9.1',
    options: spellOptions({ flag: `-b -t -z --binary --text --tag --zero ${gnu}`, number: '-l --length' }),
    operands: { rest: 'file' },
  }),
  cmp: {
    manual: 'cmp(1), diffutils 3.8',
    options: spellOptions({
      flag: `-b -l -s --print-bytes --verbose --quiet --silent ${gnu}`,
      number: '-n --bytes',
      text: '-i --ignore-initial',
    }),
    operands: { first: ['file', 'file'], rest: 'number', min: 1 },
  },
  comm: {
    manual: 'comm(1), coreutils 9.1',
    options: spellOptions({
      flag: `-1 -2 -3 -z --check-order --nocheck-order --total --zero-terminated ${gnu}`,
      text: '--output-delimiter',
    }),
    operands: { first: ['file', 'file'], min: 2 },
  },
  diff: {
    // Excluded: --from-file, --to-file and -X read names of files; -l and --paginate run pr(1).
    manual: 'diff(1), diffutils 3.8',
    options: spellOptions({
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
  ...sameGrammar('hexdump hd', {
    // Excluded: -f reads formats from a file.
    manual: 'hexdump(1), bsdextrautils 2.38',
    options: spellOptions({
      flag: '-b -c -C -d -o -v -x --one-byte-octal --one-byte-char --canonical --two-bytes-decimal --two-bytes-hex',
      number: '-n -s --length --skip',
      text: '-e --format',
    }),
    operands: { rest: 'file' },
  }),
  head: {
    manual: 'head(1), coreutils 9.1',
    options: spellOptions({
      flag: `-q -v -z --quiet --silent --verbose --zero-terminated ${gnu}`,
      number: '-c -n --bytes --lines',
    }),
    digits: true,
    operands: { rest: 'file' },
  },
  od: {
    manual: 'od(1), coreutils 9.1',
    options: spellOptions({
      flag: `-a -b -c -d -f -i -l -o -s -v -x --output-duplicates --traditional ${gnu}`,
      text: '-A -t --address-radix --format --endian',
      number: '-j -N -S -w --skip-bytes --read-bytes',
      'number?': '--strings --width',
    }),
    operands: { rest: 'file' },
  },
  strings: {
    // Refuses operands that begin with @, because @file is a file of options. -T loads nothing, and
    // is excluded with it.
    manual: 'strings(1), binutils 2.40',
    options: spellOptions({
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
    options: spellOptions({
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
    options: spellOptions({
      flag: `-c -l -L -m -w --bytes --chars --lines --max-line-length --words ${gnu}`,
      text: '--total',
    }),
    operands: { rest: 'file' },
  },
  xxd: {
    // Refuses a second operand, which is the output file. Excluded: -r, which writes back.
    manual: 'xxd(1), vim 9.0',
    style: 'word',
    options: spellOptions({
      flag: '-a -b -C -d -e -E -i -p -ps -u -v -version -h -help',
      number: '-c -cols -g -groupsize -l -len -o -s -seek',
    }),
    operands: { first: ['file'] },
  },
}
