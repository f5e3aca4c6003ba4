import { type Grammar, type Grammars, oneOf, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const manual = 'hdfs, yarn, hadoop: Apache Hadoop 3.3 commands guide'
/**
 * A Hadoop file system's word on its paths: names and sizes, never contents, one directory at a
 * time: -R, -du and -count go through all below. -D and -conf are settings, -fs goes elsewhere.
 */
const files: Grammar = {
  manual,
  style: 'word',
  options: spellOptions({ flag: '-ls -df -stat -h -d -C -t -S -r -u -q -v -x -help' }),
  operands: { rest: 'text' },
  requires: ['-ls', '-df', '-stat', '-help'],
  refusesOperands: ['^//', '^[a-z0-9+.-]+://', '^[^/%][^/]*:'],
}

/** Hadoop's file system and schedulers, and the ensembles of ZooKeeper beside them. */
export const hadoop: Grammars = {
  ...sameGrammar('hdfs', {
    // fsck goes through all that the name node has.
    manual,
    commands: {
      dfs: files,
      dfsadmin: {
        // -safemode get alone tells; enter and leave act, and so does every other word.
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
      // -confKey prints a value, which may be a password.
      getconf: {
        ...oneOf(manual, '-namenodes -secondaryNameNodes -backupNodes -journalNodes -nnRpcAddresses'),
        style: 'word',
      },
      version: { manual },
    },
  }),
  hadoop: { manual, commands: { fs: files, version: { manual } } },
  yarn: {
    // kill and move are options of the same commands.
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
    // Without a command it is a session, and `get` prints what a node holds.
    manual: 'zookeeper-shell, Apache Kafka 3.6',
    style: 'plain',
    operands: { first: ['host', 'text', 'text'], min: 3 },
    second: '^(ls|stat)$',
    refusesOperands: ['^-'],
  }),
  'zkCli.sh': {
    // Without a command it is a session, and `get` prints what a node holds.
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
