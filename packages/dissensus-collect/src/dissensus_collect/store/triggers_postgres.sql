CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the event log is append-only'; END $$;
CREATE TRIGGER event_stays BEFORE UPDATE OR DELETE ON event FOR EACH ROW EXECUTE FUNCTION append_only();

CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a response is never changed; save a revision'; END $$;
CREATE TRIGGER response_stays BEFORE UPDATE ON response FOR EACH ROW EXECUTE FUNCTION never_changed();

CREATE FUNCTION judgement_is_whole() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    IF (SELECT count(*) FROM judgement JOIN response ON response.judgement = judgement.id
        WHERE judgement.assignment = NEW.id AND judgement.current = 1
    ) <> (SELECT classes FROM instrument WHERE version = NEW.version) THEN
        RAISE EXCEPTION 'a done assignment has exactly one response for every class';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER judgement_whole BEFORE UPDATE ON assignment FOR EACH ROW WHEN (NEW.state = 'done')
EXECUTE FUNCTION judgement_is_whole();

CREATE FUNCTION begins_open() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'an assignment begins open'; END $$;
CREATE TRIGGER judgement_begins BEFORE INSERT ON assignment FOR EACH ROW WHEN (NEW.state <> 'open')
EXECUTE FUNCTION begins_open();
