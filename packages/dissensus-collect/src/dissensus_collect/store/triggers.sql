CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER event_remains BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER response_stays BEFORE UPDATE ON response
BEGIN SELECT RAISE(ABORT, 'a response is never changed; save a revision'); END;
CREATE TRIGGER judgement_whole BEFORE UPDATE ON assignment
WHEN NEW.state = 'done' AND (
    SELECT count(*) FROM judgement JOIN response ON response.judgement = judgement.id
    WHERE judgement.assignment = NEW.id AND judgement.current = 1
) <> (SELECT classes FROM instrument WHERE version = NEW.version)
BEGIN SELECT RAISE(ABORT, 'a done assignment has exactly one response for every class'); END;
CREATE TRIGGER judgement_begins BEFORE INSERT ON assignment WHEN NEW.state <> 'open'
BEGIN SELECT RAISE(ABORT, 'an assignment begins open'); END;
