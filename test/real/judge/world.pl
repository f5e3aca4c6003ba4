# A lane of throw-away worlds, for world.ts. A world is a set of namespaces of its own (user, mount, process, network, IPC, name) over
# a copy-on-write view of this machine's /usr, /etc and /var, with a neighbour that runs in it. One text after the other is run in it by bash; after
# each is told what it left: files (the upper layers), processes, mounts, packets, signals, calls of the kernel that change the machine. The
# next text gets a new world where anything was left.
#
# Perl, since Debian's essential packages bring it, and since it forks in a fraction of a millisecond. Frames on both sides: a line with the
# length, then that many bytes. In: files to plant, `f\0path\0mode\0content in base64`; links, `l\0path\0target`; a neighbour, `n\0name\0option\0environment…`;
# a text, `t\0seconds\0directory\0count\0environment…\0text`. Out: `how\0status\0milliseconds\0facts\0standard output\0\0standard error`, each in base64.
use strict;
use warnings;
use POSIX ();
use MIME::Base64 ();
use Time::HiRes ();

use File::Basename ();
require(File::Basename::dirname(__FILE__) . '/kernel.pl');

our ($resolver, %flag, $RDONLY, $NOSUID, $NODEV, $NOEXEC, $BIND, $REC, $PRIVATE);
my $place = shift @ARGV;
my $outputBytes = 262_144;
# Each is an overlay of its own, so that nothing else of this machine (homes, work, temporary files) is there.
my @trees = ('usr', 'etc', 'var');

sub write_all {
  my ($handle, $bytes) = @_;
  my $done = 0;
  while ($done < length $bytes) {
    my $count = syswrite $handle, $bytes, length($bytes) - $done, $done;
    next if !defined $count && $!{EINTR};
    die "write: $!\n" unless defined $count;
    $done += $count;
  }
}

sub send_frame { write_all($_[0], length($_[1]) . "\n" . $_[1]) }

# Byte by byte up to the line's end: who reads with a buffer would take what another one waits for.
sub read_frame {
  my ($handle) = @_;
  my $line = '';
  while (1) {
    my $count = sysread $handle, my $byte, 1;
    return undef unless $count;
    last if $byte eq "\n";
    $line .= $byte;
  }
  my $bytes = '';
  while (length $bytes < $line) { sysread($handle, $bytes, $line - length $bytes, length $bytes) or return undef }
  return $bytes;
}

sub make_path { my ($path) = @_; my $at = ''; for (split m{/}, $path) { next if $_ eq ''; $at .= "/$_"; mkdir $at, 0755 } }

sub plant {
  my ($kind, $path, @rest) = @_;
  my $full = "$place/planted$path";
  make_path($full =~ s{/[^/]*$}{}r);
  if ($kind eq 'l') { symlink $rest[0], $full; return }
  my ($mode, $content) = @rest;
  if (open my $file, '>:raw', $full) { print $file MIME::Base64::decode_base64($content); close $file; chmod oct $mode, $full }
}

# The world's own file system, seen by nobody else; its upper layers stay visible to this process.
sub build_root {
  my ($at) = @_;
  my $layers = 'redirect_dir=nofollow,userxattr';
  mount('overlay', "$at/root", 'overlay', $NOSUID | $NODEV, "lowerdir=$place/planted:$place/base,upperdir=$at/up/root,workdir=$at/scratch/root,$layers");
  for (@trees) {
    mkdir "$place/planted/$_";
    mount('overlay', "$at/root/$_", 'overlay', $NOSUID | $NODEV, "lowerdir=$place/planted/$_:$place/lower/$_,upperdir=$at/up/$_,workdir=$at/scratch/$_,$layers");
  }
  mount('devices', "$at/root/dev", 'tmpfs', $NOSUID, 'mode=755');
  for (qw(null zero full random urandom)) {
    open my $node, '>', "$at/root/dev/$_" or die;
    mount("/dev/$_", "$at/root/dev/$_", '', $BIND);
  }
  mkdir "$at/root/dev/shm";
  symlink '/proc/self/fd', "$at/root/dev/fd";
  symlink "/proc/self/fd/$_->[1]", "$at/root/dev/$_->[0]" for ['stdin', 0], ['stdout', 1], ['stderr', 2];
  mount('scratch', "$at/root/dev/shm", 'tmpfs', $NOSUID | $NODEV, 'size=32m,mode=1777');
}

# A directory of the base has to be there for what is mounted on it; links of a merged /usr are the machine's.
sub build_base {
  mkdir "$place/$_" for qw(planted base lower worlds);
  mkdir "$place/base/$_" for qw(dev proc sys root home srv opt tmp run mnt media boot), @trees;
  chmod 01777, "$place/base/tmp";
  chmod 0700, "$place/base/root";
  for my $name (qw(bin sbin lib lib32 lib64 libx32)) {
    my $target = readlink "/$name";
    if (defined $target) { symlink $target, "$place/base/$name" }
    elsif (-d "/$name") { mkdir "$place/base/$name"; push @trees, $name }
  }
  for (@trees) { mkdir "$place/lower/$_"; mkdir "$place/base/$_"; mount("/$_", "$place/lower/$_", '', $BIND) }
}

sub processes { opendir(my $proc, '/proc') or return (); return grep { /^\d+$/ && $_ != 1 } readdir $proc }

# `pid` by name and words, of all that are neither kept nor dead.
sub living {
  my ($kept) = @_;
  my %found;
  for my $pid (processes()) {
    next if $kept->{$pid};
    my $state = slurp("/proc/$pid/stat") =~ /\) (\w)/ ? $1 : 'X';
    next if $state =~ /[XZ]/;
    $found{$pid} = slurp("/proc/$pid/cmdline") =~ tr/\0/ /r;
  }
  return \%found;
}

# What a network and its mounts look like: routes, links, names.
sub standing {
  my %links = map { $_ => slurp("/sys/class/net/$_/flags") . slurp("/sys/class/net/$_/mtu") } map { m{([^/]+)$} } glob '/sys/class/net/*';
  return { mounts => slurp('/proc/self/mountinfo'), routes => slurp('/proc/net/fib_trie'), links => join(' ', map { "$_=$links{$_}" } sort keys %links), name => (POSIX::uname())[1] };
}

sub start_neighbour {
  my ($name, $option, %environment) = @_;
  my $pid = fork // die "fork: $!\n";
  return $pid if $pid;
  POSIX::setsid();
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  POSIX::close($_) for 3 .. 63;
  %ENV = (PATH => '/usr/bin:/bin', %environment);
  exec { "/srv/app/bin/$name" } $name, '-e', 'sleep 3600 while 1', '--', $option or POSIX::_exit(127);
}

sub start_text {
  my ($directory, $environment, $text, $in, $out, $err, $told, $go) = @_;
  my $pid = fork // die "fork: $!\n";
  return $pid if $pid;
  eval {
    POSIX::setsid();
    POSIX::dup2(fileno $in, 0); POSIX::dup2(fileno $out, 1); POSIX::dup2(fileno $err, 2);
    my ($told_at, $go_at) = (fileno $told, fileno $go);
    chdir $directory or chdir '/';
    # Processor time, size of a file, of data, no core.
    for ([0, 6], [1, 64 << 20], [2, 1 << 30], [4, 0]) { my $limit = pack 'QQ', ($_->[1]) x 2; my $none = 0; call('prlimit', 0, $_->[0], $limit, $none) }
    my $listener = load_filter();
    syswrite $told, pack 'L', $listener;
    sysread $go, my $byte, 1;
    POSIX::close($_) for 3 .. 63;
    %ENV = %$environment;
    exec { '/bin/bash' } 'bash', '--noprofile', '--norc', '-c', $text or POSIX::_exit(126);
  };
  POSIX::_exit(125);
}

# Runs one text to its end or its time, and kills what is left of it.
sub run_text {
  my ($neighbours, $seconds, $directory, $count, @rest) = @_;
  my %environment = map { split /=/, $_, 2 } splice @rest, 0, $count;
  my ($text) = @rest;
  my %facts;
  my ($before, $routes) = (standing(), no_routes());
  # A device gives an empty input.
  open my $in, '<', '/dev/null' or die "input: $!\n";
  pipe(my $out_read, my $out_write); pipe(my $err_read, my $err_write);
  pipe(my $told_read, my $told_write); pipe(my $go_read, my $go_write);
  my $began = Time::HiRes::time();
  my $pid = start_text($directory, \%environment, $text, $in, $out_write, $err_write, $told_write, $go_read);
  close $_ for $in, $out_write, $err_write, $told_write, $go_read;
  my $listener;
  if (sysread $told_read, my $number, 4) {
    my $of = call('pidfd_open', $pid, 0);
    my $fd = call('pidfd_getfd', $of, unpack('L', $number), 0);
    POSIX::close($of);
    open $listener, '+<&=', $fd or die "listener: $!\n";
  }
  syswrite $go_write, 'g'; close $go_write; close $told_read;

  my %text = (out => '', err => '');
  my %open = (out => $out_read, err => $err_read);
  my ($how, $status, $ended_at) = ('ended', undef, undef);
  my $kept = { %$neighbours, 1 => 1 };
  while (1) {
    my $now = Time::HiRes::time();
    if (!defined $status && waitpid($pid, POSIX::WNOHANG()) == $pid) { $status = $?; $ended_at = $now }
    while ((my $orphan = waitpid(-1, POSIX::WNOHANG())) > 0) { if ($orphan == $pid) { $status = $?; $ended_at = $now } delete $neighbours->{$orphan} }
    if (!defined $status && $now - $began > $seconds) { $how = 'time'; last }
    # What it left behind may still print, or end by itself.
    if (defined $status) { last if $now - $ended_at > 0.4 || (!%open && !%{ living($kept) }) }
    my $bits = '';
    vec($bits, fileno $_, 1) = 1 for values %open, $resolver, $listener // ();
    select my $ready = $bits, undef, undef, defined $status ? 0.01 : 0.05;
    answer_call($listener, $kept, \%facts) if $listener && vec $ready, fileno $listener, 1;
    answer_name(\%facts) if vec $ready, fileno $resolver, 1;
    for my $name (keys %open) {
      next unless vec $ready, fileno $open{$name}, 1;
      my $count = sysread $open{$name}, my $bytes, 65_536;
      if (!$count) { delete $open{$name}; next }
      $text{$name} .= $bytes if length $text{$name} < $outputBytes;
      if (length $text{out} > 8 * $outputBytes) { $how = 'output' }
    }
  }
  # A question that it did not wait for.
  while (1) { my $bits = ''; vec($bits, fileno $resolver, 1) = 1; last unless select($bits, undef, undef, 0) > 0; answer_name(\%facts) }
  my $left = living($kept);
  if ($how eq 'ended') { $facts{"alive $left->{$_}"} = 1 for keys %$left }
  for (1 .. 50) { my @left = keys %{ living($kept) }; last unless @left; kill 'KILL', @left; Time::HiRes::sleep(0.005); 1 while waitpid(-1, POSIX::WNOHANG()) > 0 }
  1 while waitpid(-1, POSIX::WNOHANG()) > 0;
  close $listener if $listener;
  for (keys %$neighbours) { $facts{'neighbour gone'} = 1 if (slurp("/proc/$_/stat") =~ /\) (\w)/ ? $1 : 'X') =~ /[XZTt]/ }
  my $after = standing();
  for (sort keys %$before) { $facts{"$_ changed"} = 1 if $before->{$_} ne $after->{$_} }
  my $sent = no_routes() - $routes;
  $facts{"packets $sent"} = 1 if $sent;
  opendir(my $scratch, '/dev/shm');
  $facts{'scratch used'} = 1 if grep { !/^\.\.?$/ } readdir $scratch;
  my $took = int(1000 * (Time::HiRes::time() - $began));
  return join "\0", $how, defined $status ? $status : -1, $took, map { MIME::Base64::encode_base64($_, '') } join("\n", sort keys %facts), substr($text{out}, 0, $outputBytes), substr($text{err}, 0, $outputBytes);
}

# The world's first process.
sub live {
  my ($at, $in, $out, $neighbours) = @_;
  # Ends with the process that began it.
  syscall 157, 1, 9, 0, 0, 0;
  mount('processes', "$at/root/proc", 'proc', $NOSUID | $NODEV | $NOEXEC);
  # A text that forks without an end fails at this number; older kernels have one for the whole machine, which nobody in here may write.
  if (open my $most, '>', "$at/root/proc/sys/kernel/pid_max") { print $most 4000 }
  # Root of a world is root of these files, too: they are the machine's.
  for (grep { -e "$at/root/proc/$_" } qw(sys sysrq-trigger irq bus fs acpi scsi mtrr)) {
    mount("$at/root/proc/$_", "$at/root/proc/$_", '', $BIND);
    mount('none', "$at/root/proc/$_", '', 0x20 | $BIND | $RDONLY | $NOSUID | $NODEV | $NOEXEC);
  }
  mount('system', "$at/root/sys", 'sysfs', $RDONLY | $NOSUID | $NODEV | $NOEXEC);
  chdir "$at/root";
  my ($here, $there, $old) = ('.', '.', '.');
  call('pivot_root', $here, $there);
  call('umount', $old, 2);
  chdir '/';
  begin_network();
  # A text that forks without an end fails at this number; older kernels have one for the whole machine.
  open_resolver();
  my %pids = map { start_neighbour(@$_) => 1 } @$neighbours;
  Time::HiRes::sleep(0.02);
  send_frame($out, 'ready');
  while (defined(my $frame = read_frame($in))) { send_frame($out, run_text(\%pids, split /\0/, $frame, -1)) }
  POSIX::_exit(0);
}

my $worlds = 0;
sub start_world {
  my ($neighbours) = @_;
  my $at = "$place/worlds/" . ++$worlds;
  make_path("$at/$_") for 'root', map { ("up/$_", "scratch/$_") } 'root', @trees;
  chmod 0755, "$at/up/root";
  pipe(my $in_read, my $in_write); pipe(my $out_read, my $out_write);
  pipe(my $mapped_read, my $mapped_write); pipe(my $made_read, my $made_write);
  my $middle = fork // die "fork: $!\n";
  if (!$middle) {
    my $told = eval {
      my $all = 0; $all |= $_ for values %flag;
      call('unshare', $all);
      syswrite $made_write, 'm';
      sysread $mapped_read, my $byte, 1;
      POSIX::setgid(0); POSIX::setuid(0);
      build_root($at);
      my $first = fork // die "fork: $!\n";
      if (!$first) { close $in_write; close $out_read; eval { live($at, $in_read, $out_write, $neighbours) }; send_frame($out_write, "failed $@"); POSIX::_exit(1) }
      waitpid $first, 0;
      1;
    };
    send_frame($out_write, "failed $@") unless $told;
    POSIX::_exit(0);
  }
  close $in_read; close $out_write;
  sysread $made_read, my $byte, 1;
  for (qw(uid_map gid_map)) { open my $map, '>', "/proc/$middle/$_" or die "map: $!\n"; print $map "0 0 4294967295\n"; close $map or die "map: $!\n" }
  syswrite $mapped_write, 'g';
  my $said = read_frame($out_read) // 'nothing';
  die "a world: $said\n" if $said ne 'ready';
  return { at => $at, in => $in_write, out => $out_read, middle => $middle };
}

sub end_world {
  my ($world) = @_;
  close $world->{in};
  kill 'KILL', $world->{middle};
  waitpid $world->{middle}, 0;
  system 'rm', '-rf', "$world->{at}/up", "$world->{at}/scratch";
}

# What the upper layers hold, as paths of the world. A directory alone was touched, by what was made in it and removed.
sub changes {
  my ($world) = @_;
  my @found;
  my $walk;
  $walk = sub {
    my ($layer, $path) = @_;
    my $full = "$world->{at}/up/$layer$path";
    my $shown = ($layer eq 'root' ? '' : "/$layer") . $path;
    my @stat = lstat $full;
    if (-c _ && $stat[6] == 0) { push @found, "removed $shown"; return }
    my $was = lstat("$place/planted$shown") || lstat("$place/" . ($layer eq 'root' ? 'base' : 'lower') . $shown);
    lstat $full;
    if (!-d _) { push @found, ($was ? 'changed' : 'made') . " $shown"; return }
    opendir(my $directory, $full);
    my @names = grep { !/^\.\.?$/ } readdir $directory;
    if ($path ne '' && !$was) { push @found, "made $shown" }
    elsif ($path ne '' && !@names) { push @found, "touched $shown" }
    $walk->($layer, "$path/$_") for sort @names;
  };
  $walk->($_, '') for 'root', @trees;
  return @found;
}

call('unshare', $flag{NEWNS});
mount('none', '/', '', $REC | $PRIVATE);
mount('place', $place, 'tmpfs', 0, 'mode=755');
build_base();
my @neighbours;
my $world;
while (defined(my $frame = read_frame(\*STDIN))) {
  my ($kind, @fields) = split /\0/, $frame, -1;
  if ($kind eq 'f' || $kind eq 'l') { plant($kind, @fields) }
  elsif ($kind eq 'n') { my ($name, $option, @environment) = @fields; push @neighbours, [$name, $option, map { split /=/, $_, 2 } @environment] }
  else {
    $world //= start_world(\@neighbours);
    send_frame($world->{in}, join "\0", @fields);
    my $answer = read_frame($world->{out});
    my @left = changes($world);
    my $is_gone = !defined $answer;
    $answer //= join "\0", 'world', -1, 0, MIME::Base64::encode_base64("world ended", ''), '', '';
    my ($how, $status, $took, $facts, $out, $err) = split /\0/, $answer, -1;
    my @facts = (split(/\n/, MIME::Base64::decode_base64($facts)), @left);
    if ($is_gone || $how ne 'ended' || @facts) { end_world($world); $world = undef }
    send_frame(\*STDOUT, join "\0", $how, $status, $took, MIME::Base64::encode_base64(join("\n", @facts), ''), $out, $err);
  }
}
end_world($world) if $world;
