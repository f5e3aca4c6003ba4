import { type Grammar, type Grammars, oneOf, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const manual = 'hdfs, yarn, hadoop: Apache Hadoop 3.3 commands guide'
/**
 * Commands on paths of Hadoop's file system: names and sizes, never contents, one directory at a
 * time. Excluded: -R, -du and -count read everything below; -D and -conf are settings; -fs names
 * another file system.
 */
const files: Grammar = {
  manual,
  style: 'word',
  options: spellOptions({ flag: '-ls -df -stat -h -d -C -t -S -r -u -q -v -x -help' }),
  operands: { rest: 'text' },
  requires: ['-ls', '-df', '-stat', '-help'],
  refusesOperands: ['^//', '^[a-z0-9+.-]+://', '^[^/%][^/]*:'],
}

/** Hadoop's file system and schedulers, and ZooKeeper's ensembles. */
export const hadoop: Grammars = {
  ...sameGrammar('hdfs', {
    // Excluded: fsck, which reads all files of the name node.
    manual,
    commands: {
      dfs: files,
      dfsadmin: {
        // Refuses other words after -safemode, because only `get` reads. `enter`, `leave` and every
        // other word change the state.
        manual,
        style: 'word',
        options: spellOptions({ flag: '-report -live -dead -decommissioning -printTopology -safemode' }),
        operands: { rest: 'text' },
        refusesOperands: ['^(?!get$)'],
        requires: ['-report', '-printTopology', '-safemode'],
        only: [{ value: '', first: '^get$' }],
      },
      haadmin: {
        manual,
        style: 'word',
        options: spellOptions({ flag: '-getAllServiceState -getServiceState -checkHealth', text: '-ns' }),
        operands: { first: ['name'] },
        requires: ['-getAllServiceState', '-getServiceState', '-checkHealth'],
      },
      // Excluded: -confKey, which prints a value that may be a password.
      getconf: {
        ...oneOf(manual, '-namenodes -secondaryNameNodes -backupNodes -journalNodes -nnRpcAddresses'),
        style: 'word',
      },
      version: { manual },
    },
  }),
  hadoop: { manual, commands: { fs: files, version: { manual } } },
  yarn: {
    // Excluded: kill and move, which are options of the same commands.
    manual,
    commands: {
      ...sameGrammar('node application app queue applicationattempt container', {
        manual,
        style: 'word',
        options: spellOptions({
          flag: '-list -all -showDetails',
          name: '-status',
          text: '-states -appStates -appTypes',
        }),
        operands: { first: ['name'] },
        requires: ['-list', '-status'],
      }),
      rmadmin: {
        manual,
        style: 'word',
        options: spellOptions({ flag: '-getAllServiceState', name: '-getServiceState' }),
        requires: ['-getAllServiceState', '-getServiceState'],
      },
      version: { manual },
    },
  },
  'zkServer.sh': verbs('zkServer.sh, Apache ZooKeeper 3.8', 'status|version'),
  ...sameGrammar('zookeeper-shell zookeeper-shell.sh', {
    // Requires a command, because without one it is a session. Excluded: `get`, which prints a
    // node's contents.
    manual: 'zookeeper-shell, Apache Kafka 3.6',
    style: 'plain',
    operands: { first: ['host', 'text', 'text'], min: 3 },
    second: '^(ls|stat)$',
    refusesOperands: ['^-'],
  }),
  'zkCli.sh': {
    // Requires a command, because without one it is a session. Excluded: `get`, which prints a
    // node's contents.
    manual: 'zkCli.sh, Apache ZooKeeper 3.8',
    style: 'word',
    options: spellOptions({ host: '-server', number: '-timeout', flag: '-R -s' }),
    commands: sameGrammar('ls stat', { operands: { first: ['text'], min: 1 } }),
  },
  ...sameGrammar('kafka-reassign-partitions kafka-reassign-partitions.sh', {
    manual: 'kafka-reassign-partitions, Apache Kafka 3.6',
    style: 'word',
    options: spellOptions({ flag: '--list', host: '--bootstrap-server' }),
    requires: ['--list'],
  }),
}
